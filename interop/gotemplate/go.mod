module orrery.io/interop/gotemplate

go 1.26
