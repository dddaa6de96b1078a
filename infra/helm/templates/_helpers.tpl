{{- define "millrace.labels" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* shared says whether several processes share the store: "true", or nothing. */}}
{{- define "millrace.shared" -}}
{{- if and .Values.store .Values.postgres.secretName }}{{ fail "store and postgres.secretName: give one of them" }}{{ end -}}
{{- if or .Values.store .Values.postgres.secretName }}true{{ end -}}
{{- end }}

{{- define "millrace.store" -}}
{{- if .Values.postgres.secretName }}
- {name: MILLRACE_STORE, valueFrom: {secretKeyRef: {name: {{ .Values.postgres.secretName }}, key: {{ .Values.postgres.key }}}}}
{{- else if .Values.store }}
- {name: MILLRACE_STORE, value: {{ .Values.store | quote }}}
- {name: MILLRACE_BELL, value: {{ required "bell: sqs:NAME, which several processes on DynamoDB need" .Values.bell | quote }}}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "millrace.confined" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "millrace.pod" -}}
{{- $shared := include "millrace.shared" . -}}
metadata:
  labels: {{- include "millrace.labels" . | nindent 4 }}
  annotations:
    millrace/config: {{ .Values.config | sha256sum }} # a change begins new processes
spec:
  serviceAccountName: {{ .Release.Name }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- if .Values.postgres.secretName }}
  initContainers:
    - name: tables # makes them if they are missing; many may try at once
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [tables]
      env: {{- include "millrace.store" . | nindent 8 }}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext: {{- include "millrace.confined" . | nindent 8 }}
  {{- end }}
  containers:
    - name: millrace
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --listen, "0.0.0.0:8080"{{ if not $shared }}, --data, /data{{ end }}]
      ports: [{name: http, containerPort: 8080}]
      env:
        - {name: MILLRACE_SECRETS, value: "file:/run/secrets/millrace/millrace.json"}
        - {name: MILLRACE_CONFIG, value: /etc/millrace/millrace.yaml}
        - {name: MILLRACE_LOG, value: {{ .Values.log | quote }}}
        - {name: MILLRACE_WORKERS, value: {{ .Values.workers | quote }}}
        - {name: MILLRACE_DRAIN, value: 25s}
        - {name: MILLRACE_URL, value: {{ .Values.url | default (printf "http://%s.%s" .Release.Name .Release.Namespace) | quote }}}
        {{- include "millrace.store" . | nindent 8 }}
      startupProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 2, failureThreshold: 60}
      readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, timeoutSeconds: 3}
      livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, timeoutSeconds: 3}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext: {{- include "millrace.confined" . | nindent 8 }}
      volumeMounts:
        - {name: secrets, mountPath: /run/secrets/millrace, readOnly: true}
        - {name: config, mountPath: /etc/millrace, readOnly: true}
        {{- if not $shared }}
        - {name: data, mountPath: /data}
        {{- end }}
  volumes:
    - {name: secrets, secret: {secretName: {{ .Values.secretName }}}}
    - {name: config, configMap: {name: {{ .Release.Name }}}}
{{- end }}
