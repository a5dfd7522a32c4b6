// Package main uses enough of the library to have a thousand functions.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

func main() {
	words := strings.Fields(strings.Join(os.Args, " "))
	sort.Strings(words)
	fmt.Println(len(words), words)
}
