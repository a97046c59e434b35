// Prints the Unicode tables of crates/gotemplate as Go itself knows them.
package main

import (
	"fmt"
	"strconv"
	"unicode"
)

func table(doc, name string, member func(rune) bool) {
	var edges []rune
	inside := false
	for r := rune(0x80); r <= unicode.MaxRune+1; r++ {
		if now := r <= unicode.MaxRune && member(r); now != inside {
			edges, inside = append(edges, r), now
		}
	}
	fmt.Printf("\n/// %s\n#[rustfmt::skip]\npub(super) const %s: [u32; %d] = [", doc, name, len(edges))
	column := 999
	for _, r := range edges {
		word := fmt.Sprintf(" 0x%x,", r)
		if column+len(word) > 118 {
			fmt.Print("\n   ")
			column = 3
		}
		fmt.Print(word)
		column += len(word)
	}
	fmt.Print("\n];\n")
}

func main() {
	fmt.Printf("//! The edges of the character classes beyond ASCII, for Unicode %s; written by `interop/gotemplate/tables`.\n", unicode.Version)
	fmt.Println("//!\n//! A character belongs to a class when the number of edges at or below it is odd.")
	table("Letters: the categories L*.", "LETTER", unicode.IsLetter)
	table("Decimal digits: the category Nd.", "DIGIT", unicode.IsDigit)
	table("What may be shown as it is: the categories L*, M*, N*, P* and S*.", "PRINTABLE", strconv.IsPrint)
}
