{{/* Labels of every object. */}}
{{- define "qwen.labels" -}}
app.kubernetes.io/name: qwen
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "qwen.selectorLabels" -}}
app.kubernetes.io/name: qwen
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
