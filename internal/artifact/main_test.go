package artifact_test

import (
	"testing"

	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
