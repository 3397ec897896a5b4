{{/* Name of the app, in names and labels. */}}
{{- define "chat.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* A name of at most so many characters: a longer one becomes its beginning and a hash of the whole. */}}
{{- define "chat.shortened" -}}
{{- $name := index . 0 -}}
{{- $most := index . 1 | int -}}
{{- if gt (len $name) $most -}}
{{- $begin := trunc (sub $most 9 | int) $name | trimAll "-." -}}
{{- printf "%s-%s" $begin (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{/*
Full name of the release, with which the names of its objects begin. A dependency shares the name of the release with
others, so its own name is always appended.
*/}}
{{- define "chat.fullname" -}}
{{- $name := include "chat.name" . -}}
{{- $release := replace "." "-" .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- include "chat.shortened" (list .Values.fullnameOverride 53) -}}
{{- else if regexMatch "^[0-9]" $release -}}
{{- fail (printf "a Service may not begin with a digit, as the release `%s` does: set fullnameOverride" $release) -}}
{{- else if and .Chart.IsRoot (contains $name $release) -}}
{{- include "chat.shortened" (list $release 53) -}}
{{- else -}}
{{- include "chat.shortened" (list (printf "%s-%s" $release $name) 53) -}}
{{- end -}}
{{- end }}

{{/* Labels, with `global.labels`. */}}
{{- define "chat.withGlobalLabels" -}}
{{- merge (dict) (index . 1) ((index . 0).Values.global.labels | default dict) | toJson -}}
{{- end }}

{{/* Annotations, with `global.annotations`. */}}
{{- define "chat.withGlobalAnnotations" -}}
{{- merge (dict) (index . 1) ((index . 0).Values.global.annotations | default dict) | toJson -}}
{{- end }}

{{/* Labels of every object. */}}
{{- define "chat.labels" -}}
{{- with include "chat.withGlobalLabels" (list . .Values.labels) | fromJson }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: "{{ include "chat.name" . }}"
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "chat.selectorLabels" -}}
app.kubernetes.io/name: "{{ include "chat.name" . }}"
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}

{{/* An image, from the registry in `global.imageRegistry`. */}}
{{- define "chat.image" -}}
{{- with (index . 0).Values.global.imageRegistry -}}
{{- printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" (index $ 1) "") -}}
{{- else -}}
{{- index . 1 -}}
{{- end -}}
{{- end }}

{{/* Secrets for pulling images, with `global.imagePullSecrets`. */}}
{{- define "chat.imagePullSecrets" -}}
{{- $secrets := index . 1 -}}
{{- range (index . 0).Values.global.imagePullSecrets -}}
{{- $secret := kindIs "map" . | ternary . (dict "name" .) -}}
{{- if not (has $secret $secrets) }}{{ $secrets = append $secrets $secret }}{{ end -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end }}

{{/* Full name of another app: its name, or as it is in a dependency next to this one. */}}
{{- define "chat.otherApp" -}}
{{- $context := index . 0 -}}
{{- if $context.Chart.IsRoot -}}
{{- index . 1 -}}
{{- else -}}
{{- $release := replace "." "-" $context.Release.Name -}}
{{- include "chat.shortened" (list (printf "%s-%s" $release (index . 1)) (index . 2)) -}}
{{- end -}}
{{- end }}

{{/* Stops where an item of a setting is there already: the API server would reject the list. */}}
{{- define "chat.unique" -}}
{{- $keys := index . 1 -}}
{{- $taken := index . 2 -}}
{{- $path := index . 0 -}}
{{- range $item := index . 3 -}}
{{- $values := list -}}
{{- range $keys }}{{ $values = append $values (get $item . | default "" | toString) }}{{ end -}}
{{- $value := join " " $values -}}
{{- if and (trim $value) (has $value $taken) -}}
{{- fail (printf "%s: `%s` is there already; set it in the spec, or choose another %s" $path $value (first $keys)) -}}
{{- end -}}
{{- $taken = append $taken $value -}}
{{- end -}}
{{- end }}
