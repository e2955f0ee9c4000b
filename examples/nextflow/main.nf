// Encodes a directory of batches in shards:
//   nextflow run examples/nextflow --batches /srv/replay/batches --output /srv/replay/output
// The program gets absolute paths, which have to be the same on all machines, since sessions grow in place.

process encode {
    tag "${shard}/${params.shards}"

    input:
    val shard

    script:
    """
    encoder-worker encode --batches '${params.batches}' --output '${params.output}' \\
      --shard ${shard}/${params.shards} --jobs ${task.cpus}
    """
}

workflow {
    channel.of(0..<params.shards) | encode
}
