module assay.dev/assay/test/e2e

go 1.26.0

require assay.dev/assay/operator v0.0.0

replace assay.dev/assay/operator => ../../operator
