.PHONY: demo test test-all test-full test-corpus platforms fuzz mutate torture nightly-nfs sanitize bench capacity sweep browsers docs serving remote lint-examples build man deb test-deb image format fixtures clean

# Frames of a bundled example become segments in ./demo. Installs what it needs.
demo:
	scripts/demo

# Format, warnings, all tests, in some minutes. Installs what it needs.
test:
	scripts/test

# Everything, for a night; PARTS names some. CONTRIBUTING tells what each part proves.
test-all:
	scripts/test-all $(PARTS)

# The tests of `make test`, with whole storms and sessions of a day.
test-full:
	scripts/setup test
	TEST_EXTENT=full scripts/run-tests

# The program's tests over real sessions (CORPUS=DIR), other programs' test images (BAD_IMAGES=DIR) and recorders' own files
# (SAMPLES=DIR).
test-corpus:
	scripts/setup test
	SESSION_CORPUS="$(or $(CORPUS),../shared/corpus)" BAD_IMAGES="$(or $(BAD_IMAGES),../shared/bad-images)" \
	  RECORDER_SAMPLES="$(or $(SAMPLES),../shared/samples)" scripts/run-tests EncoderWorkerTests SessionTests

# Builds and tests on each supported release of Debian; RELEASES names some. Needs root and a mirror.
platforms:
	scripts/setup platforms-host
	scripts/platforms --page docs/platforms.md $(RELEASES)

# Fuzz every reader of untrusted bytes with libFuzzer for MINUTES minutes in all; TARGETS selects some.
MINUTES ?= 1
fuzz:
	scripts/fuzz $$(($(MINUTES) * 60)) $(TARGETS)

# Drains spools of N mutated batches and sees whether every promise is kept; SEED for others.
N ?= 10000
SEED ?= 1
mutate:
	scripts/setup test
	scripts/build
	python3 Tests/torture/mutate.py .build/release/encoder-worker --count $(N) --seed $(SEED)

# The worker killed before every call that changes a file, every call failing once, full disks, power cuts, 2 000 batches
# among workers killed at random, the last again and again until the minutes are over; and the mutated batches.
torture: mutate
	scripts/setup torture
	scripts/build
	ENCODER_WORKER="$$(swift build -c release --show-bin-path)/encoder-worker" \
	  python3 Tests/torture/torture.py --minutes $(MINUTES)

# Hosts that share a spool over real NFS, ROUNDS times with each kind of mount; in a virtual machine where this kernel has no NFS.
ROUNDS ?= 5
nightly-nfs:
	scripts/nightly-nfs --rounds $(ROUNDS) --seed $(SEED)

# All tests under ThreadSanitizer and AddressSanitizer.
sanitize:
	scripts/sanitize

# Us and the usual ffmpeg recipes over real sessions, or CORPUS=DIR.
bench:
	scripts/setup bench
	scripts/build
	/usr/bin/python3 Benchmarks/bench.py $(CORPUS)

# The needs of a million sessions a day, by arithmetic and simulation.
capacity:
	scripts/setup capacity
	/usr/bin/python3 Benchmarks/capacity.py

# x264's settings over real sessions, or CORPUS=DIR: CPU, bytes, likeness, legibility.
sweep:
	scripts/setup sweep
	scripts/build
	/usr/bin/python3 Benchmarks/sweep.py $(CORPUS)

# Segments, films, the player page and colours in Chromium, Firefox ESR and WebKitGTK, by screenshots; BROWSERS names some.
# PHOTOS=DIR adds photographs, HLS_JS=FILE plays HLS through that copy of hls.js.
browsers:
	scripts/setup browsers
	scripts/build
	/usr/bin/python3 Tests/browsers/browsers.py --page docs/players.md $(BROWSERS)

# The library's documentation as a web site in .build/docs.
docs:
	scripts/setup build
	scripts/docs

# The cost of `serve`: a thousand sessions listed, two hundred clients for a minute.
serving:
	scripts/setup demo
	scripts/build
	python3 Benchmarks/serving.py .build/release/encoder-worker --seconds $(SECONDS)
SECONDS ?= 60

# The cost of a queue and a store beside a spool, over real sessions, or CORPUS=DIR.
remote:
	scripts/setup remote
	scripts/build
	/usr/bin/python3 Benchmarks/remote.py $(CORPUS)

# The examples for batch engines, held against what the engines say of themselves.
lint-examples: build
	scripts/lint-examples

build:
	scripts/setup build
	scripts/build

# The manual page, and completions for bash, zsh and fish: .build/share.
man: build
	packaging/share .build/release/encoder-worker .build/share

# The Debian package: .build/deb/*.deb
deb:
	packaging/deb

# The package in a clean Debian; needs root and a mirror.
test-deb: deb
	packaging/test-deb .build/deb/*.deb

# An OCI image archive in .build/image, from Debian's packages alone; then a test of it. Needs root and a mirror.
image: deb
	packaging/image .build/deb/*.deb
	packaging/test-image .build/image/encoder-worker_*.oci.tar

format:
	swift format --in-place --recursive Sources Tests Fuzzing examples Package.swift

# Makes the fixtures anew; needs python3-pil and zstd.
fixtures:
	/usr/bin/python3 fixtures/generate.py
	/usr/bin/python3 fixtures/generate_formats.py
	/usr/bin/python3 fixtures/generate_colours.py

clean:
	rm -rf .build demo
