module assay.dev/assay/test/docs

go 1.26.0

require (
	go.yaml.in/yaml/v3 v3.0.6
	mvdan.cc/sh/v3 v3.14.1
)
