package openaichat

import (
	"bytes"

	"github.com/hozo-run/hozo/provider/wire"
)

// addPiece gives a piece of a tool call to the call it belongs to.
func (d *decoder) addPiece(p piece) error {
	c := d.find(p)
	if c == nil {
		var err error
		if c, err = d.assembly.OpenCall(p.slot); err != nil {
			return err
		}
	}
	if err := d.assembly.CallID(c, p.id); err != nil {
		return err
	}
	if len(p.name) > 0 {
		if err := d.assembly.CallName(c, p.name); err != nil {
			return err
		}
	}
	if len(p.object) > 0 {
		return d.assembly.CallObject(c, p.object)
	}
	return d.assembly.CallArguments(c, p.arguments.raw)
}

// find returns the open call that a piece continues, nil if it begins a new one.
//
// Servers number their calls in every way: properly; all with index 0 and told apart by their ids; from an index above
// 0; without index; without id; with one id for several indexes; with an id that changes within a call. The rules are,
// in this order: index and id together name a call; then the index alone, unless another id comes with a name, which
// is how a new call begins; without an index the id; without both, a name begins a call and anything else continues
// the last one. A call that is complete is not continued by a piece that has a name and arguments of its own.
func (d *decoder) find(p piece) *wire.Call {
	calls := d.assembly.Calls()
	if len(calls) == 0 {
		return nil
	}
	var found *wire.Call
	if p.slot >= 0 {
		found = bySlot(calls, p)
	} else {
		found = byID(calls, p)
	}
	if found != nil && len(p.name) > 0 && p.hasArguments() && found.Complete() {
		return nil
	}
	return found
}

func (p piece) hasArguments() bool {
	return len(p.object) > 0 || len(bytes.TrimSpace(p.arguments.raw)) > 0
}

func bySlot(calls []*wire.Call, p piece) *wire.Call {
	id := ""
	if len(p.id) > 0 {
		id = wire.Unquote(p.id)
	}
	var latest *wire.Call
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		if c.Slot != p.slot {
			continue
		}
		if id != "" && c.ID == id {
			return c
		}
		if latest == nil {
			latest = c
		}
	}
	if latest != nil && id != "" && latest.ID != "" && len(p.name) > 0 {
		return nil
	}
	return latest
}

func byID(calls []*wire.Call, p piece) *wire.Call {
	last := calls[len(calls)-1]
	if len(p.id) > 0 {
		id := wire.Unquote(p.id)
		for i := len(calls) - 1; i >= 0; i-- {
			if calls[i].ID == id {
				return calls[i]
			}
		}
		if last.ID == "" && len(p.name) == 0 {
			return last
		}
		return nil
	}
	if len(p.name) > 0 && last.Name() != "" {
		return nil
	}
	return last
}
