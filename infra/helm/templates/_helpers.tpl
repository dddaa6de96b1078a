{{- define "millrace.labels" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "millrace.pod" -}}
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
  containers:
    - name: millrace
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --listen, "0.0.0.0:8080"{{ if not .Values.store }}, --data, /data{{ end }}]
      ports: [{name: http, containerPort: 8080}]
      env:
        - {name: MILLRACE_SECRETS, value: "file:/run/secrets/millrace/millrace.json"}
        - {name: MILLRACE_CONFIG, value: /etc/millrace/millrace.yaml}
        - {name: MILLRACE_LOG, value: {{ .Values.log | quote }}}
        - {name: MILLRACE_WORKERS, value: {{ .Values.workers | quote }}}
        - {name: MILLRACE_DRAIN, value: 25s}
        - {name: MILLRACE_URL, value: {{ .Values.url | default (printf "http://%s.%s" .Release.Name .Release.Namespace) | quote }}}
        {{- if .Values.store }}
        - {name: MILLRACE_STORE, value: {{ .Values.store | quote }}}
        - {name: MILLRACE_BELL, value: {{ required "bell: sqs:NAME, which several processes need" .Values.bell | quote }}}
        {{- end }}
        {{- range $name, $value := .Values.env }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      startupProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 2, failureThreshold: 60}
      readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, timeoutSeconds: 3}
      livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, timeoutSeconds: 3}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: secrets, mountPath: /run/secrets/millrace, readOnly: true}
        - {name: config, mountPath: /etc/millrace, readOnly: true}
        {{- if not .Values.store }}
        - {name: data, mountPath: /data}
        {{- end }}
  volumes:
    - {name: secrets, secret: {secretName: {{ .Values.secretName }}}}
    - {name: config, configMap: {name: {{ .Release.Name }}}}
{{- end }}
