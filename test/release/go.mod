// What a release consists of, and that it can be installed with nothing else.
module assay.dev/assay/test/release

go 1.26.0
