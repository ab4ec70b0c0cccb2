// What a release consists of, and that it can be installed with nothing else.
module assay.dev/assay/test/release

go 1.26.0

require go.yaml.in/yaml/v3 v3.0.6
