package gittool

import (
	"errors"
	"fmt"
	"strings"
)

// split divides a command into words as a POSIX shell does, with quotes and backslashes, but expands nothing. What a shell
// would read as more than words is an error, so that nobody takes the text for a shell's.
func split(text string) ([]string, error) {
	s := splitter{rest: strings.TrimRight(text, " \t\n\r")}
	for s.rest != "" {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	return s.words, nil
}

type splitter struct {
	rest  string
	words []string
	word  strings.Builder
	// open says that there is a word, which may be empty.
	open bool
}

func (s *splitter) end() {
	if s.open {
		s.words = append(s.words, s.word.String())
		s.word.Reset()
		s.open = false
	}
}

func (s *splitter) add(text string) {
	s.word.WriteString(text)
	s.open = true
}

// next reads what begins the rest.
func (s *splitter) next() error {
	c := s.rest[0]
	rest := s.rest[1:]
	switch c {
	case ' ', '\t':
		s.end()
	case '\'':
		quoted, after, closed := strings.Cut(rest, "'")
		if !closed {
			return errors.New("a single quote is not closed")
		}
		s.add(quoted)
		rest = after
	case '"':
		n, err := s.doubleQuoted(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	case '\\':
		if rest == "" {
			return errors.New("there is nothing after the last backslash")
		}
		if rest[0] != '\n' { // a backslash before a newline stands for nothing
			s.add(rest[:1])
		}
		rest = rest[1:]
	case '\n', '\r':
		return errors.New("it has more than one line, and only one git command can be given; put a newline that is meant as such into quotes")
	case ';', '&', '|', '<', '>', '(', ')', '`':
		return fmt.Errorf("it holds %q, which only a shell understands: one git command is run without a shell; put the character into quotes if it belongs to a value", c)
	case '$':
		if rest != "" && (rest[0] == '_' || rest[0] == '{' || rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') {
			return errors.New("it holds a variable, and none is expanded; put $ into single quotes if it belongs to a value")
		}
		s.add("$")
	default:
		s.add(s.rest[:1])
	}
	s.rest = rest
	return nil
}

// doubleQuoted reads up to the closing quote and returns how much that was.
func (s *splitter) doubleQuoted(text string) (int, error) {
	s.open = true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0:
			if i++; text[i] != '\n' {
				s.word.WriteByte(text[i])
			}
		default:
			s.word.WriteByte(c)
		}
	}
	return 0, errors.New("a double quote is not closed")
}
