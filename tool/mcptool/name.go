package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what every model service takes.
const maxName = 64

// shownName returns the name under which the model knows a tool. Where the server's own name cannot be used as it is, the
// result ends in a hash of both names; so it does not depend on what else a server lists, and it is stable.
func shownName(server, original string) string {
	name := prefix + server + "__" + plain(original)
	if len(name) <= maxName && strings.HasSuffix(name, "__"+original) {
		return name
	}
	return hashedName(server, original)
}

// hashedName is the form of a name that had to be changed.
func hashedName(server, original string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + original))
	suffix := "_" + hex.EncodeToString(sum[:4])
	name := prefix + server + "__" + plain(original)
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// plain replaces everything that model services do not take in a name.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}

// assignNames returns the shown name of each of a server's own names. A name that looks like the hashed form of another
// tool is hashed itself. Names that clash even so are left out; that takes a server which tries.
func assignNames(server string, originals []string) map[string]string {
	owners := map[string][]string{}
	for _, original := range originals {
		shown := shownName(server, original)
		owners[shown] = append(owners[shown], original)
	}
	names := map[string]string{}
	taken := map[string]int{}
	for shown, list := range owners {
		for _, original := range list {
			if len(list) > 1 {
				names[original] = hashedName(server, original)
			} else {
				names[original] = shown
			}
			taken[names[original]]++
		}
	}
	for original, shown := range names {
		if taken[shown] > 1 {
			delete(names, original)
		}
	}
	return names
}
