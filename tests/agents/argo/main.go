// Drives Argo CD's engine as its application controller does, for tests: live objects are read anew before each step of
// an operation, health is judged by the Lua of argocd-cm, and what an operation has done outlives the process. It has
// no repository, no ApplicationSet and no port: revisions are folders, and Applications are a file.
//
//	argo-driver CONFIG                 runs until it is killed; prints a line of JSON for each change
//	argo-driver health RULES < OBJECTS prints a line of JSON for each object
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const tracking = "argocd.argoproj.io/tracking-id"

// Each revision of a checkout is a folder; `current` is a link to the newest.
type config struct {
	Kubeconfig, Checkout, HealthRules, State string
	Applications                             []application
}

type application struct {
	Name, Path, Namespace            string
	After                            []string // Applications that must be synced and healthy first
	Prune, SelfHeal, ServerSideApply bool
	Retries                          int
	Backoff                          backoff
}

// How long Argo CD waits before it tries a failed operation again.
type backoff struct {
	Seconds, Factor, MaxSeconds float64
}

func (b backoff) after(attempts int) time.Duration {
	seconds := b.Seconds * math.Pow(b.Factor, float64(attempts-1))
	return time.Duration(min(seconds, b.MaxSeconds) * float64(time.Second))
}

// What Argo CD keeps in the status of an Application.
type operation struct {
	Revision  string
	Phase     common.OperationPhase
	Message   string
	Results   []common.ResourceSyncResult
	StartedAt metav1.Time
	EndedAt   time.Time
	Attempts  int
}

type report struct {
	Name     string                  `json:"name"`
	Revision string                  `json:"revision"`
	Synced   bool                    `json:"synced"`
	Health   health.HealthStatusCode `json:"health"`
	Phase    common.OperationPhase   `json:"phase"`
	Message  string                  `json:"message"`
}

type driver struct {
	config     config
	rest       *rest.Config
	cache      cache.ClusterCache
	kubectl    kube.Kubectl
	rules      luaRules
	operations map[string]*operation
	reports    map[string]report
}

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "health":
		err = judge(os.Args[2])
	case len(os.Args) == 2:
		err = run(os.Args[1])
	default:
		err = errors.New("usage: argo-driver CONFIG | argo-driver health RULES")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	d := driver{kubectl: &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}, operations: map[string]*operation{}, reports: map[string]report{}}
	if err := readYAML(file, &d.config); err != nil {
		return err
	}
	if err := readYAML(d.config.State, &d.operations); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var err error
	if d.rules, err = readRules(d.config.HealthRules); err != nil {
		return err
	}
	if d.rest, err = clientcmd.BuildConfigFromFlags("", d.config.Kubeconfig); err != nil {
		return err
	}
	d.rest.QPS, d.rest.Burst = 500, 500
	d.cache = cache.NewClusterCache(d.rest, cache.SetLogr(logr.Discard()), cache.SetPopulateResourceInfoHandler(
		func(un *unstructured.Unstructured, _ bool) (any, bool) {
			mark := un.GetAnnotations()[tracking]
			return mark, mark != ""
		}))
	for {
		if err := d.cache.EnsureSynced(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		} else {
			for _, app := range d.config.Applications {
				d.report(d.tick(app))
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// One look at one Application: compare, go on with the operation or begin one.
func (d *driver) tick(app application) report {
	current, err := filepath.EvalSymlinks(filepath.Join(d.config.Checkout, "current"))
	if err != nil {
		return failed(app, "", err)
	}
	revision := filepath.Base(current)
	op := d.operations[app.Name]
	if op != nil && !op.Phase.Completed() && op.Revision != revision {
		revision = op.Revision // an operation that runs ends with the revision that it began with
	}
	targets, err := manifests(filepath.Join(d.config.Checkout, revision, app.Path), app)
	if err != nil {
		return failed(app, revision, err)
	}
	live, err := d.cache.GetManagedLiveObjs(targets, func(r *cache.Resource) bool {
		mark, _ := r.Info.(string)
		return strings.HasPrefix(mark, app.Name+":")
	})
	if err != nil {
		return failed(app, revision, err)
	}
	result := sync.Reconcile(targets, live, app.Namespace, d.cache)
	diffs, err := diff.DiffArray(result.Target, result.Live, diff.WithLogr(logr.Discard()))
	if err != nil {
		return failed(app, revision, err)
	}
	if d.begins(app, op, revision, diffs.Modified) {
		attempts := 1
		if op != nil && op.Revision == revision {
			attempts += op.Attempts
		}
		op = &operation{Revision: revision, StartedAt: metav1.Now(), Attempts: attempts}
		d.operations[app.Name] = op
	}
	if op != nil && !op.Phase.Completed() {
		if err := d.step(app, op, result, diffs.Modified); err != nil {
			return failed(app, revision, err)
		}
	}
	said := report{Name: app.Name, Revision: revision, Synced: !diffs.Modified, Health: d.health(result)}
	if op != nil {
		said.Phase, said.Message = op.Phase, op.Message
	}
	return said
}

// Automated sync: once a revision, again after a failure as often as retries allow and no sooner than the backoff, for a
// drift with selfHeal only.
func (d *driver) begins(app application, op *operation, revision string, outOfSync bool) bool {
	if op != nil && !op.Phase.Completed() || !outOfSync || !d.mayBegin(app, revision) {
		return false
	}
	if op == nil || op.Revision != revision {
		return true
	}
	if op.Phase == common.OperationSucceeded {
		return app.SelfHeal
	}
	return op.Attempts <= app.Retries && time.Since(op.EndedAt) >= app.Backoff.after(op.Attempts)
}

func (d *driver) mayBegin(app application, revision string) bool {
	return !slices.ContainsFunc(app.After, func(name string) bool {
		before := d.reports[name]
		return !before.Synced || before.Health != health.HealthStatusHealthy || before.Revision != revision
	})
}

func (d *driver) step(app application, op *operation, result sync.ReconciliationResult, modified bool) error {
	options := []sync.SyncOpt{
		sync.WithLogr(logr.Discard()),
		sync.WithHealthOverride(d.rules),
		sync.WithPrune(app.Prune),
		sync.WithServerSideApply(app.ServerSideApply),
		sync.WithServerSideApplyManager("argocd-controller"),
		sync.WithSkipHooks(!modified),
	}
	if op.Phase != "" {
		options = append(options, sync.WithInitialState(op.Phase, op.Message, op.Results, op.StartedAt))
	}
	context, cleanup, err := sync.NewSyncContext(
		op.Revision, result, d.rest, d.rest, d.kubectl, app.Namespace, d.cache.GetOpenAPISchema(), options...)
	if err != nil {
		return err
	}
	defer cleanup()
	context.Sync()
	op.Phase, op.Message, op.Results = context.GetState()
	if op.Phase.Completed() {
		op.EndedAt = time.Now()
	}
	return d.keep()
}

func (d *driver) keep() error {
	content, err := json.Marshal(d.operations)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.config.State+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(d.config.State+".new", d.config.State)
}

// The worst of all objects that the revision has.
func (d *driver) health(result sync.ReconciliationResult) health.HealthStatusCode {
	worst := health.HealthStatusHealthy
	for i, target := range result.Target {
		if target == nil {
			continue
		}
		status := health.HealthStatusMissing
		if live := result.Live[i]; live != nil {
			found, err := health.GetResourceHealth(live, d.rules)
			switch {
			case err != nil:
				status = health.HealthStatusUnknown
			case found == nil:
				continue
			default:
				status = found.Status
			}
		}
		if health.IsWorse(worst, status) {
			worst = status
		}
	}
	return worst
}

func (d *driver) report(said report) {
	if d.reports[said.Name] != said {
		d.reports[said.Name] = said
		line, _ := json.Marshal(said)
		fmt.Println(string(line))
	}
}

func failed(app application, revision string, err error) report {
	return report{Name: app.Name, Revision: revision, Health: health.HealthStatusUnknown, Message: "ComparisonError: " + err.Error()}
}

// A folder as Argo CD's repository server reads it: through kustomize, or each of its YAML files, without sub-folders.
func manifests(folder string, app application) ([]*unstructured.Unstructured, error) {
	text, err := build(folder)
	if err != nil {
		return nil, err
	}
	objects, err := kube.SplitYAML(text)
	for _, object := range objects {
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("%s: a document is not a Kubernetes object", app.Path)
		}
		key := kube.GetResourceKey(object)
		marks := object.GetAnnotations()
		if marks == nil {
			marks = map[string]string{}
		}
		marks[tracking] = fmt.Sprintf("%s:%s/%s:%s/%s", app.Name, key.Group, key.Kind, key.Namespace, key.Name)
		object.SetAnnotations(marks)
	}
	return objects, err
}

func build(folder string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err == nil {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			return nil, err
		}
		return built.AsYaml()
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, entry := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		text = append(append(text, "\n---\n"...), content...)
	}
	return text, nil
}

// luaRules are the health rules of argocd-cm by group and kind, run by the interpreter that Argo CD uses.
type luaRules map[string]string

func readRules(file string) (luaRules, error) {
	var settings struct{ Data map[string]string }
	if err := readYAML(file, &settings); err != nil {
		return nil, err
	}
	rules := luaRules{}
	for key, text := range settings.Data {
		if name, found := strings.CutPrefix(key, "resource.customizations.health."); found {
			rules[name] = text
		}
	}
	return rules, nil
}

func (rules luaRules) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	kind := object.GroupVersionKind()
	name := kind.Kind
	if kind.Group != "" {
		name = kind.Group + "_" + kind.Kind
	}
	text, found := rules[name]
	if !found {
		return nil, nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for library, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(library))
		state.Call(1, 0)
	}
	content, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	given, err := luajson.Decode(state, content)
	if err != nil {
		return nil, err
	}
	state.SetGlobal("obj", given)
	if err := state.DoString(text); err != nil {
		return nil, err
	}
	answer, err := luajson.Encode(state.Get(-1))
	if err != nil {
		return nil, err
	}
	status := &health.HealthStatus{}
	return status, json.Unmarshal(answer, status)
}

func judge(file string) error {
	rules, err := readRules(file)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			return err
		}
		status, err := health.GetResourceHealth(object, rules)
		if err != nil {
			return err
		}
		line, _ := json.Marshal(status)
		fmt.Println(string(line))
	}
	return lines.Err()
}

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}
