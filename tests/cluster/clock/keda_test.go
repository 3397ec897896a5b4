// Runs KEDA's own cron scaler with a moved clock.
package clock

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

type window struct {
	Zone, Start, End string
	From             time.Time
	Hours            int
}

// TestWindows writes for each window of $ASKED when it opens and closes.
func TestWindows(t *testing.T) {
	var asked []window
	check(t, json.Unmarshal([]byte(os.Getenv("ASKED")), &asked))
	found := make([][]string, len(asked))
	for i, each := range asked {
		synctest.Test(t, func(t *testing.T) { found[i] = changes(t, each) })
	}
	data, err := json.Marshal(found)
	check(t, err)
	check(t, os.WriteFile(os.Getenv("FOUND"), data, 0o600))
}

func changes(t *testing.T, asked window) []string {
	zone, err := time.LoadLocation(asked.Zone)
	check(t, err)
	time.Sleep(time.Until(asked.From))
	scaler, err := scalers.NewCronScaler(&scalersconfig.ScalerConfig{TriggerMetadata: map[string]string{
		"timezone": asked.Zone, "start": asked.Start, "end": asked.End, "desiredReplicas": "2",
	}})
	check(t, err)
	found, before := []string{}, ""
	for range asked.Hours * 60 {
		_, active, err := scaler.GetMetricsAndActivity(context.Background(), "replicas")
		check(t, err)
		state := map[bool]string{true: "open", false: "closed"}[active]
		if state != before {
			found = append(found, time.Now().In(zone).Format("02 15:04 MST ")+state)
		}
		before = state
		time.Sleep(time.Minute)
	}
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
