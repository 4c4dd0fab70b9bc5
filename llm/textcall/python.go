package textcall

// wish is a call as the model wrote it: the name and the arguments are not checked yet.
type wish struct {
	name, id string
	args     value
	// given says that there were arguments at all.
	given bool
	// texts says that the values are text without a type, as in XML.
	texts bool
	// unnamed is the value of a Python call that has no name, if it is the only one.
	unnamed *value
	// err says why the arguments cannot be read, and source is their text.
	err    error
	source string
	// from and to are where the call stands in the reply.
	from, to int
}

// calls reads Python calls up to the closing bracket, or up to the end of the text if bracket is 0. Commas and line
// ends stand between them.
func (r *reader) calls(bracket byte) ([]wish, error) {
	var wishes []wish
	for {
		c := r.peek()
		switch {
		case c == ',' || c == ';':
			r.pos++
			continue
		case c == bracket && c != 0:
			r.pos++
			return wishes, nil
		case c == 0 && (bracket == 0 || len(wishes) > 0):
			r.repaired = r.repaired || bracket != 0
			return wishes, nil
		}
		w, err := r.call()
		if err != nil {
			return nil, err
		}
		wishes = append(wishes, w)
	}
}

// call reads name(key=value, …).
func (r *reader) call() (wish, error) {
	w := wish{args: emptyObject(), given: true}
	w.name = r.dotted()
	if w.name == "" || r.peek() != '(' {
		return w, r.fault("no call")
	}
	r.pos++
	r.depth++
	for first := true; ; first = false {
		more, err := r.next(first, ')')
		if err != nil {
			return w, err
		}
		if !more {
			break
		}
		if err := r.argument(&w); err != nil {
			return w, err
		}
	}
	r.depth--
	return w, nil
}

// argument reads key=value, or one value without a name.
func (r *reader) argument(w *wish) error {
	r.peek()
	start := r.pos
	key := r.word()
	r.pos += len(key)
	if key != "" && r.peek() == '=' {
		r.pos++
		item, err := r.value()
		w.args.set(key, item)
		return err
	}
	r.pos = start
	item, err := r.value()
	if err == nil && (w.unnamed != nil || len(w.args.keys) > 0) {
		return r.fault("an argument has no name")
	}
	w.unnamed = &item
	return err
}

// dotted reads a name that may hold dots and hyphens and moves over it.
func (r *reader) dotted() string {
	end := r.pos
	for end < len(r.text) && nameByte(r.text[end]) {
		end++
	}
	name := r.text[r.pos:end]
	r.work.spend(len(name))
	r.pos = end
	return name
}

// nameByte reports whether a tool's name may hold c, or the name before it.
func nameByte(c byte) bool { return wordByte(c) || c == '-' || c == '.' }
