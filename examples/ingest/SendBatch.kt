// Sends a batch to a worker: SendBatch FILE http://HOST:PORT/v1/batches/NAME, with the token in INGEST_TOKEN.
import java.io.File
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URI
import kotlin.system.exitProcess

fun send(file: File, address: String, token: String?): Pair<Int, String> {
    repeat(50) {
        var pause = 1L
        try {
            val connection = URI(address).toURL().openConnection() as HttpURLConnection
            connection.requestMethod = "PUT"
            connection.doOutput = true
            connection.readTimeout = 60_000
            connection.setFixedLengthStreamingMode(file.length())
            connection.setRequestProperty("Content-Type", "application/octet-stream")
            if (token != null) connection.setRequestProperty("Authorization", "Bearer $token")
            connection.outputStream.use { body -> file.inputStream().use { it.copyTo(body) } }
            val status = connection.responseCode
            val text = (if (status < 400) connection.inputStream else connection.errorStream)?.reader()?.readText() ?: ""
            if (status !in listOf(408, 429, 503)) return Pair(status, text)
            pause = connection.getHeaderField("Retry-After")?.toLongOrNull() ?: 1
        } catch (broken: IOException) {
            // The same request again does no harm.
        }
        Thread.sleep(1000 * pause)
    }
    return Pair(0, "no answer")
}

fun main(arguments: Array<String>) {
    val (status, text) = send(File(arguments[0]), arguments[1], System.getenv("INGEST_TOKEN"))
    println("$status $text".trim())
    if (status !in listOf(200, 201)) exitProcess(1)
}
