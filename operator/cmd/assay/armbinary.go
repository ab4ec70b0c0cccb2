package main

import "github.com/spf13/pflag"

// bindArmBinary adds the flag with which arms that have images get their programs on this machine.
func bindArmBinary(flags *pflag.FlagSet, into *[]string) {
	flags.StringArrayVar(into, "arm-binary", nil,
		"ARM=PATH, the program of an arm that has an image of its own, or ARM/BUILD=PATH of one of its builds; may be repeated")
}
