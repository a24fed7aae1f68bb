// A launcher in Go that is linked dynamically: clears PROGRAM ARGUMENT... starts it with no environment.
package main

// #include <stdlib.h>
import "C"

import (
	"os"
	"os/exec"
)

func main() {
	C.abs(1)
	command := exec.Command(os.Args[1], os.Args[2:]...)
	command.Env = []string{}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if command.Run() != nil {
		os.Exit(1)
	}
}
