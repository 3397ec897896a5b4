// Runs Kubernetes' own controller of CronJobs with a moved clock.
package clock

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	handlers "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/cronjob"
)

type schedule struct {
	CronJob batch.CronJob
	From    time.Time
	Hours   int
	// Between these moments the schedule is suspended; not at all if they are the same.
	Suspended, Resumed time.Time
}

// TestSchedules writes when the runs of each CronJob of $ASKED start.
func TestSchedules(t *testing.T) {
	// The second one waits by a clock that began outside of the bubble. The controller tries again what fails.
	handlers.ErrorHandlers = handlers.ErrorHandlers[:1]
	var asked []schedule
	check(t, json.Unmarshal([]byte(os.Getenv("ASKED")), &asked))
	found := make([][]string, len(asked))
	for i, each := range asked {
		synctest.Test(t, func(t *testing.T) { found[i] = starts(t, each) })
	}
	data, err := json.Marshal(found)
	check(t, err)
	check(t, os.WriteFile(os.Getenv("FOUND"), data, 0o600))
}

func starts(t *testing.T, asked schedule) []string {
	zone, err := time.LoadLocation(*asked.CronJob.Spec.TimeZone)
	check(t, err)
	time.Sleep(time.Until(asked.From))
	asked.CronJob.CreationTimestamp = meta.Now()
	client := fake.NewSimpleClientset(&asked.CronJob)
	found := []string{}
	client.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		run := action.(clientgotesting.CreateAction).GetObject().(*batch.Job)
		// The API server would set these.
		run.Namespace, run.UID = action.GetNamespace(), types.UID(run.Name)
		err := client.Tracker().Create(action.GetResource(), run, run.Namespace)
		if err == nil {
			found = append(found, time.Now().In(zone).Format("02 15:04 MST"))
			go func() {
				time.Sleep(10 * time.Second)
				now, ended := meta.Now(), run.DeepCopy()
				ended.Status.Conditions = []batch.JobCondition{{Type: batch.JobComplete, Status: core.ConditionTrue}}
				ended.Status.CompletionTime = &now
				if err := client.Tracker().Update(action.GetResource(), ended, ended.Namespace); err != nil {
					t.Error(err)
				}
			}()
		}
		return true, run, err
	})
	client.PrependReactor("update", "cronjobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		// The API server refuses what is older than what it has.
		cron, resource := action.(clientgotesting.UpdateAction).GetObject().(*batch.CronJob), action.GetResource()
		live, err := client.Tracker().Get(resource, cron.Namespace, cron.Name)
		if err == nil && cron.Status.LastScheduleTime.Before(live.(*batch.CronJob).Status.LastScheduleTime) {
			err = errors.NewConflict(resource.GroupResource(), cron.Name, nil)
		}
		return err != nil, nil, err
	})
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := cronjob.NewControllerV2(ctx, factory.Batch().V1().Jobs(), factory.Batch().V1().CronJobs(), client)
	check(t, err)
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	if asked.Resumed.After(asked.Suspended) {
		for moment, suspend := range map[time.Time]bool{asked.Suspended: true, asked.Resumed: false} {
			go func() {
				time.Sleep(time.Until(moment))
				crons := client.BatchV1().CronJobs(asked.CronJob.Namespace)
				live, err := crons.Get(ctx, asked.CronJob.Name, meta.GetOptions{})
				if err == nil {
					live.Spec.Suspend = &suspend
					_, err = crons.Update(ctx, live, meta.UpdateOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}()
		}
	}
	time.Sleep(time.Duration(asked.Hours) * time.Hour)
	cancel()
	factory.Shutdown()
	synctest.Wait()
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
