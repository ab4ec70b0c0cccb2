module assay.dev/assay/hack/english

go 1.26.0
