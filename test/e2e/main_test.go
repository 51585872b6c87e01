//go:build e2e

package e2e

import (
	"os"
	"testing"

	"heliograph/internal/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }
