{{/* Name of the app, in names and labels. */}}
{{- define "kaigen-reaper.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* Full name of the release, with which the names of its objects begin. */}}
{{- define "kaigen-reaper.fullname" -}}
{{- $name := include "kaigen-reaper.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "kaigen-reaper.selectorLabels" -}}
app.kubernetes.io/name: "{{ include "kaigen-reaper.name" . }}"
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}

{{/* Labels of every object. */}}
{{- define "kaigen-reaper.labels" -}}
{{- $global := .Values.global | default dict -}}
{{- $own := include "kaigen-reaper.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $own .Values.labels ($global.labels | default dict)) -}}
{{- end }}

{{/* Annotations of an object: its own, `annotations` and `global.annotations`. */}}
{{- define "kaigen-reaper.annotations" -}}
{{- $global := (index . 0).Values.global | default dict -}}
{{- with merge (dict) (index . 1) (index . 0).Values.annotations ($global.annotations | default dict) -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end }}

{{/* Name of the ServiceAccount. */}}
{{- define "kaigen-reaper.account" -}}
{{- .Values.serviceAccount.name | default (include "kaigen-reaper.fullname" .) -}}
{{- end }}

{{/* Namespaces of the Jobs and volumes, as a JSON list; empty for all. */}}
{{- define "kaigen-reaper.namespaces" -}}
{{- if kindIs "slice" .Values.namespaces -}}
{{- .Values.namespaces | default (list .Release.Namespace) | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* The image, from the registry in `global.imageRegistry`. */}}
{{- define "kaigen-reaper.image" -}}
{{- $global := .Values.global | default dict -}}
{{- $image := .Values.image | default (printf "ghcr.io/kaigen-dev/reaper:%s" .Chart.AppVersion) -}}
{{- with $global.imageRegistry -}}
{{- printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image "") -}}
{{- else -}}
{{- $image -}}
{{- end -}}
{{- end }}

{{/* What the program may do with the Jobs, pods and volumes of a namespace. */}}
{{- define "kaigen-reaper.rules" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, {{ if not .Values.schedule }}watch{{ end }}]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, {{ if not .Values.dryRun }}delete{{ end }}]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, {{ if not .Values.schedule }}watch, {{ end }}{{ if not .Values.dryRun }}delete{{ end }}]
{{- if not .Values.dryRun }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- end }}

{{/* Arguments that the pods and the test have in common. */}}
{{- define "kaigen-reaper.args" -}}
- run
{{- range include "kaigen-reaper.namespaces" . | fromJsonArray }}
- --namespace={{ . }}
{{- else }}
- --all-namespaces
{{- end }}
- --page={{ .Values.page }}
{{- end }}

{{/* Spec of a pod: a list of the chart, the restart policy and the arguments. */}}
{{- define "kaigen-reaper.pod" -}}
{{- $ := index . 0 -}}
{{- $values := $.Values -}}
{{- $global := $values.global | default dict -}}
restartPolicy: {{ index . 1 }}
serviceAccountName: {{ include "kaigen-reaper.account" $ | toJson }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- $secrets := $values.imagePullSecrets }}
{{- range $global.imagePullSecrets }}
{{- $secrets = append $secrets (kindIs "map" . | ternary . (dict "name" .)) }}
{{- end }}
{{- with uniq $secrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ toJson . }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ toJson . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: reaper
    image: {{ include "kaigen-reaper.image" $ | toJson }}
    {{- with $values.imagePullPolicy }}
    imagePullPolicy: {{ toJson . }}
    {{- end }}
    args:
      {{- toYaml (index . 2) | nindent 6 }}
    {{- with index . 3 }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop:
          - ALL
    terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{/* Labels and annotations of the pods. */}}
{{- define "kaigen-reaper.podMetadata" -}}
{{- $global := .Values.global | default dict -}}
{{- $own := include "kaigen-reaper.selectorLabels" . | fromYaml -}}
labels:
  {{- toYaml (merge $own .Values.podLabels ($global.labels | default dict)) | nindent 2 }}
{{- with merge (dict) .Values.podAnnotations ($global.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
