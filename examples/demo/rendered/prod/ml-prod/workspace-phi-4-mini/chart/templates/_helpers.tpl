{{/* Labels of every object. */}}
{{- define "workspace-phi-4-mini.labels" -}}
app.kubernetes.io/name: workspace-phi-4-mini
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "workspace-phi-4-mini.selectorLabels" -}}
app.kubernetes.io/name: workspace-phi-4-mini
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
