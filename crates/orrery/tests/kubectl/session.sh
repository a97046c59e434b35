# What somebody does with kubectl in a cluster, in steps that each are run by sh. A step begins with its name after `##`; what it prints, and how it ends if
# not well, is compared with what the same kubectl printed at a real server. What stands before the first step is part of every step.

## api-resources
kubectl api-resources --no-headers -o name | sort | grep -v -e orrery.io -e kubestellar.io -e open-cluster-management.io
kubectl api-resources --namespaced=false --api-group=rbac.authorization.k8s.io --no-headers | awk '{print $1, $NF}'
kubectl api-versions | sort | grep -v -e orrery.io -e kubestellar.io -e open-cluster-management.io

## create
kubectl create namespace shop
kubectl -n shop create configmap settings --from-literal=colour=green --from-literal=size=10
kubectl -n shop create secret generic access --from-literal=token=abc
kubectl -n shop create serviceaccount robot
kubectl -n shop create deployment web --image=nginx:1.27
kubectl -n shop create service clusterip web --tcp=80:8080 --clusterip=None
kubectl -n shop create role reader --verb=get,list --resource=configmaps
kubectl -n shop create rolebinding reader --role=reader --serviceaccount=shop:robot
kubectl -n shop create job once --image=busybox -- true
kubectl -n shop create configmap settings

## create-from-a-file
cat >pod.yaml <<'E'
apiVersion: v1
kind: Pod
metadata:
  generateName: one-
  labels: {app: one}
spec:
  containers:
  - name: main
    image: busybox
    resources: {requests: {cpu: 100m}}
E
kubectl -n shop create -f pod.yaml | sed 's/one-[a-z0-9]*/one-SUFFIX/'
kubectl -n shop get pods -l app=one -o jsonpath='{.items[*].status.phase} {.items[*].status.qosClass}{"\n"}'

## get
kubectl get namespace shop
kubectl -n shop get configmaps,secrets,serviceaccounts
kubectl -n shop get deploy,svc,job,role,rolebinding -o wide
kubectl -n shop get deployment web --show-labels
kubectl -n shop get cm -L colour
kubectl -n shop get cm settings missing
kubectl -n shop get cm --ignore-not-found missing
kubectl get nodes
kubectl get nonsense
kubectl -n nowhere get cm

## output-forms
kubectl -n shop get cm settings -o yaml
kubectl -n shop get cm settings -o json
kubectl -n shop get cm settings -o name
kubectl -n shop get cm settings -o jsonpath='{.data.colour}{"\n"}'
kubectl -n shop get cm settings -o go-template='{{range $k, $v := .data}}{{$k}}={{$v}} {{end}}{{"\n"}}'
kubectl -n shop get cm -o custom-columns=NAME:.metadata.name,SIZE:.data.size
kubectl -n shop get deployment web -o yaml

## sort-by
for name in b c a; do kubectl -n shop create configmap "sorted-$name" --from-literal=key="$name"; done
kubectl -n shop label cm sorted-a sorted-b sorted-c order=yes
kubectl -n shop get cm -l order=yes --sort-by=.data.key
kubectl -n shop get cm -l order=yes --sort-by=.metadata.name -o name
kubectl -n shop get cm -l 'order in (yes),order!=no' -o name
kubectl -n shop get cm --field-selector=metadata.name=sorted-b -o name
kubectl -n shop get cm --field-selector=data.key=b

## describe
kubectl describe namespace shop
# Version 1.20 prints data in no order.
kubectl -n shop describe cm settings | head -n 5
kubectl -n shop describe deployment web
kubectl -n shop describe svc web
kubectl -n shop describe role reader

## apply
cat >web.yaml <<'E'
apiVersion: v1
kind: ConfigMap
metadata:
  name: applied
  namespace: shop
  labels: {tier: front}
data:
  one: "1"
  two: "2"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: applied
  namespace: shop
spec:
  replicas: 2
  selector: {matchLabels: {app: applied}}
  template:
    metadata: {labels: {app: applied}}
    spec:
      containers:
      - {name: main, image: "nginx:1.26", env: [{name: A, value: "1"}, {name: B, value: "2"}]}
E
kubectl apply -f web.yaml
kubectl apply -f web.yaml
sed -i -e 's/nginx:1.26/nginx:1.27/' -e '/two:/d' -e 's/, {name: B, value: "2"}//' web.yaml
kubectl apply -f web.yaml
kubectl -n shop get cm applied -o jsonpath='{.data}{"\n"}'
kubectl -n shop get deployment applied -o jsonpath='{.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env}{"\n"}'
kubectl -n shop get deployment applied -o jsonpath='{.metadata.generation}{"\n"}'

## apply-what-is-wrong
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong, namespace: shop}\ndatum: {a: b}\n' | kubectl apply -f - 2>&1 | grep -c -e 'datum'
printf 'apiVersion: v1\nkind: Nonsense\nmetadata: {name: wrong, namespace: shop}\n' | kubectl apply --validate=false -f - 2>&1 | sed 's/.*no matches/no matches/; s/resource mapping not found.*//; s/^ensure CRDs.*//' | grep 'no matches'
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: wrong, namespace: shop}\nspec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}, selector: {matchLabels: {a: c}}}\n' | kubectl apply -f -

## diff
sed -i 's/replicas: 2/replicas: 3/' web.yaml
kubectl diff -f web.yaml | grep '^[+-] ' | grep -v time:
kubectl -n shop get deployment applied -o jsonpath='{.spec.replicas}{"\n"}'

## dry-run
kubectl apply --dry-run=server -f web.yaml
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ghost, namespace: shop}\n' | kubectl create --dry-run=server -f -
kubectl -n shop get cm ghost

## edit
KUBE_EDITOR='sed -i s/green/blue/' kubectl -n shop edit cm settings
kubectl -n shop get cm settings -o jsonpath='{.data.colour}{"\n"}'
KUBE_EDITOR=true kubectl -n shop edit cm settings

## patch
kubectl -n shop patch cm settings -p '{"data":{"strategic":"yes"}}'
kubectl -n shop patch cm settings --type=merge -p '{"data":{"merge":"yes","size":null}}'
kubectl -n shop patch cm settings --type=json -p '[{"op":"add","path":"/data/json","value":"yes"},{"op":"remove","path":"/data/merge"}]'
kubectl -n shop get cm settings -o jsonpath='{.data}{"\n"}'
kubectl -n shop patch deployment applied -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
kubectl -n shop get deployment applied -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
kubectl -n shop patch cm settings --type=json -p '[{"op":"test","path":"/data/json","value":"no"}]'
kubectl -n shop patch cm settings -p '{"data":{"json":"yes"}}'

## label-and-annotate
kubectl -n shop label cm settings team=blue
kubectl -n shop label cm settings team=red
kubectl -n shop label cm settings team=red --overwrite
kubectl -n shop label cm settings team-
kubectl -n shop annotate cm settings note='all is well'
kubectl -n shop annotate cm settings note-
kubectl -n shop label cm settings 'team=not valid'

## scale
kubectl -n shop scale deployment web --replicas=4
kubectl -n shop scale deployment web --current-replicas=9 --replicas=5
kubectl -n shop get deployment web -o jsonpath='{.spec.replicas} {.metadata.generation}{"\n"}'
kubectl -n shop scale cm settings --replicas=2

## set-and-rollout
kubectl -n shop set image deployment/web nginx=nginx:1.28
kubectl -n shop set env deployment/web LEVEL=high
kubectl -n shop rollout pause deployment/web
kubectl -n shop get deployment web -o jsonpath='{.spec.paused} {.spec.template.spec.containers[0].env[0].value}{"\n"}'

## expose-and-autoscale
kubectl -n shop expose deployment web --port=80 --target-port=8080 --name=exposed --cluster-ip=None
kubectl -n shop autoscale deployment web --min=2 --max=5 --cpu-percent=80 --dry-run=client -o yaml 2>/dev/null | kubectl -n shop create -f -
kubectl -n shop get hpa web -o jsonpath='{.spec.minReplicas} {.spec.maxReplicas}{"\n"}'

## replace
kubectl -n shop get cm sorted-a -o yaml | sed 's/key: a/key: z/' | kubectl replace -f -
kubectl -n shop get cm sorted-a -o jsonpath='{.data.key}{"\n"}'
kubectl -n shop get cm sorted-a -o yaml | sed 's/resourceVersion: .*/resourceVersion: "1"/; s/key: z/key: x/' | kubectl replace -f - 2>&1 | sed 's/.*Operation/Operation/'

## watch
kubectl -n shop get cm -l watched=yes --watch --no-headers -o custom-columns=NAME:.metadata.name,STATE:.data.state >watched.txt 2>&1 &
watcher=$!
until_seen() { n=0; until grep -q "$1" watched.txt; do n=$((n + 1)); [ $n -lt 600 ] || { echo "never saw $1"; cat watched.txt; exit 1; }; sleep 0.05; done; }
kubectl -n shop create cm watched --from-literal=state=new
kubectl -n shop label cm watched watched=yes
until_seen new
kubectl -n shop patch cm watched -p '{"data":{"state":"changed"}}'
until_seen changed
kill $watcher
cat watched.txt

## watch-one
kubectl -n shop get deployment web --watch --no-headers >watched.txt 2>&1 &
watcher=$!
until_seen() { n=0; until grep -q "$1" watched.txt; do n=$((n + 1)); [ $n -lt 600 ] || { echo "never saw $1"; cat watched.txt; exit 1; }; sleep 0.05; done; }
until_seen 0/4
kubectl -n shop scale deployment web --replicas=6
until_seen 0/6
kill $watcher
grep -o '^web *0/[46]' watched.txt | sort -u

## wait
kubectl -n shop wait --for=condition=Available deployment/web --timeout=60s >waited.txt 2>&1 &
waiter=$!
# Old versions ask for a raw path at the root of the server, new ones below where the kubeconfig points.
path=/apis/apps/v1/namespaces/shop/deployments/web
root=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}' | sed 's,^https://[^/]*,,')
kubectl get --raw "$path" >web.json 2>/dev/null || { path=$root$path; kubectl get --raw "$path" >web.json; }
condition='{"type":"Available","status":"True","reason":"Said","message":"so","lastUpdateTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}'
sed 's/"status":{}/"status":{"conditions":['"$condition"']}/' web.json | kubectl replace --raw "$path/status" -f - | grep -c Available
wait $waiter
cat waited.txt
kubectl -n shop wait --for=condition=Progressing deployment/applied --timeout=1s
kubectl -n shop wait --for=condition=Available deployment/missing --timeout=1s

## explain
kubectl explain pods
kubectl explain deployment.spec.template.spec.containers.resources
kubectl explain configmaps --recursive
kubectl explain cronjob.spec.schedule
kubectl explain nonsense
kubectl explain pods.spec.nonsense

## get-all
kubectl get all -A | grep -v service/kubernetes
kubectl -n shop get all -o name | sed 's/one-[a-z0-9]*/one-SUFFIX/'

## delete
kubectl -n shop delete cm sorted-a sorted-b
kubectl -n shop delete cm sorted-a
kubectl -n shop delete cm -l order=yes
kubectl -n shop delete deployment applied --cascade=orphan
kubectl -n shop delete -f web.yaml --ignore-not-found
kubectl -n shop delete pods -l app=one --grace-period=0 --force 2>&1 | sed 's/one-[a-z0-9]*/one-SUFFIX/; /^[Ww]arning/d'
kubectl -n shop delete job once
kubectl -n shop delete role reader --dry-run=server
kubectl delete namespace shop
kubectl get namespace shop
