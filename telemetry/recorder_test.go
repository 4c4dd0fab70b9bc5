package telemetry

import "testing"

func TestTheNumberOfARequestIsInItsID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][2]int64{
		"3.2": {3, 2}, "12.c1.4": {12, 4}, "7.writer-again.1": {7, 1}, "5": {5, 0}, "5.x": {5, 0}, "": {0, 0}, "x.1": {0, 0},
	} {
		if turn, try := requestNumber(id); turn != want[0] || try != want[1] {
			t.Errorf("%q is try %d of turn %d", id, try, turn)
		}
	}
}
