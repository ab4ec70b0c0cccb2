module assay.dev/assay/test/docs

go 1.26.0
