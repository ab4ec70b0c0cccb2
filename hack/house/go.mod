module assay.dev/assay/hack/house

go 1.26.0
