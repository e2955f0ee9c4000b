"""Validates the job definition and the job against botocore's model of AWS Batch. Sends no request."""
import json
import os
import sys

import botocore.session
from botocore.validate import ParamValidator

service = botocore.session.get_session().get_service_model("batch")
for operation, name in (("RegisterJobDefinition", "job-definition.json"), ("SubmitJob", "job.json")):
    with open(os.path.join(sys.argv[1], name)) as file:
        report = ParamValidator().validate(json.load(file), service.operation_model(operation).input_shape)
    if report.has_errors():
        sys.exit(f"{name}: {report.generate_report()}")
    print(f"{name}: as {operation} of AWS Batch takes it")
