module assay.dev/assay/test/extend

go 1.26.0
