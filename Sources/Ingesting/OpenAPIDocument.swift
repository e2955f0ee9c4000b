/// The OpenAPI document of the routes, a file of the program.
package enum OpenAPIDocument {
  package static let bytes = PackageResources.ingest_openapi_json
}
