/// The words that reasons keep in a report to hand on. They are the words of this program's own messages, and of those of the system. A
/// word that is missing here is shown by its shape only: nothing leaks, and the reason is harder to read.
enum ReportWords {
  /// In lower case.
  static let all = Set(
    """
    a about above absolute accept accepted actions add added address after again agree ahead all allocate allow allows
    alone alpha already also an and anew animated another answer answers any anything apart append archive archives
    are around as ascii aside asks at av avcodec avi avif away back backend background bad balanced base batch
    batchdigest batches be because become been before begin beginning begins behind being belong belongs below beside
    between beyond bits black blank bmp both box boxes bracket breaks broken but by byte byterange bytes called came
    camera can cancelled cannot canvas canvases capture captured captures carries cause change changed changedblocks
    changes character characters check checksum chmod choose chrome chunk class clock clockoffsetms clocks cloning
    closes code codec coded coding colon colour colours column come comes comma command compaction complete completes
    compress compressed compression concat conditional conditions config configuration confined content context
    contiguous continue contradict control convert converted copied copies copy correct corrupt cost could count
    counter counts created cut damaged dark data date day deadline decode decoded decoder decoding deep deflate delete
    deleted denied describe describes descriptions did died differ different differs digest digits dir directories
    directory disk distance divide do does done dot drawing drawn drops duration durationms durations dynamic each
    earlier early edit edited elements else elsewhere empty encode encoded encoder encrypted end ended endms endpoint
    ends enqueue entries entry environment equal error event events every exactly example exif exist expect expected
    facts failures false far features few fewer ffconcat ffmpeg field fields file files fill film films finished
    finite first fit flash floating flv fmt folder folders followed for fork form format formats found four fps
    fraction fragment fragments frame frames free from front gap gapafterms gaps get gif give go goes gone gzip had
    handed hangs has have head header heic height held hevc hex hexadecimal hide hierarchical high higher hold holdms
    holds hour hours i icc iconv id if ignore ignored ignores image images img import in inbandmark incoming
    incomplete index infinity info init input inside install installed instant instants instead interval intervalms
    into invalid is iso it its itself ivf joined jpeg jpg json jump jumped keep keeps kept kernel key keys kind kinds
    known knows label labels lack lacks language large larger last lasts late later layer layers leads lease least
    leave leaves left leftout legacy less level libavcodec libavformat libx lie lies light like limit limits line
    lines link links list listed lists little local lock long longer longest looks loop loses lower lowest machine
    made make makes manifest manifests many map mark marks mask masks match matrix matroska max may mdat meaning meant
    media memory mend message metadata method middle millisecond milliseconds min mirrored missing mkdir mkv mode
    modification modified moov more most mov move moves mpeg ms mtime much must name named names nan nearest need
    needs neither nested net network new next nil no nominal none nor not notes nothing nul number numbered numbers o
    object objects odd of off offset ogg older on once onchange one ones only opacity open operation option optional
    options or order orders orphan other others otherwise out outcome output outside over overlap overlaps own pack
    package pad page pages parameter part parts passthrough past path paths pattern pause pdf per percent permission
    picture pictures pixels place plain plan playlist png point pointer port post press presses preview primaries
    probably process processing producer profile program prune publish published put quarantine quarantined queue
    queued quicktime raise range rare rate raw reaches read readable reader reading reads real reason reasonable
    rebuilds receipts record recorded recorder recorders recording records rectangle reencode refused regular releases
    remove removed remux rename repair repeat repeats replace replaced report request resolutions restore retain retry
    returned right room rounded rows rrweb rule rules run runs safe same sample samplecount samples sandbox saved say
    says scale scales scans screen screencast screenshot screenshots second seconds see seen segment segments send
    sense sent sentry separator sequence serve server session sessions set sets several shape share show showed shown
    shows side signal since size sizes skipped small smaller so some something sound source sources space split splits
    spool spread square srgb srt stands start started starting startms state states stay stays step stepped steps
    still stopped stops store stored stream streams string stuck such suffix supported symbolic system table tables
    tag take taken takes tar tell tells test tests text than that the their them themselves then there these they this
    those thread ticks tier tiff tightly tiles time timed timems timeoffset times timescale timestamp timing tmp
    tmpdir to too took trace traceparent tracing track tracks transfer transparency transparent transport tried true
    truncated try turn turned twelve twice two type types under unix unknown unpack unpacked unpacking unpacks
    unreadable unsupported until up upright url use used uses utc utf verify version video videos waits wanted warning
    was way ways we webm webp webvtt were what when where which while white whole whose why wide width window windows
    with within without wmv word words work worked worker workers would write writes written wrong wrote year yet zip
    zone zones zstd
    """.split { $0.isWhitespace }.map(String.init))
}
