/**
 * Conformance checks that svcd does not pass, with the reason: they test features that it does not offer, or need tools
 * of a fixture. All other checks must pass.
 */

const OWN_TOOL = 'The suite calls a test tool that a product does not have.';
const NO_RESOURCES = 'svcd offers no resources.';
const NO_PROMPTS = 'svcd offers no prompts.';
const NO_COMPLETION = 'svcd offers no completion.';
const NO_LOGGING = 'svcd sends no log messages to clients.';
const NO_INPUT = 'No tool of svcd asks back: no sampling, elicitation or roots.';
const NO_HEADERS = 'No tool of svcd takes arguments from HTTP headers.';
const NO_CHANGES = 'The tools do not change while svcd runs, so there are no change notifications.';
const STATELESS = 'There are no sessions and no streams to resume: each request is answered on its own.';

/** Checks about resources that do not exist get `method not found`, because svcd has no resources. */
const RESOURCES: Readonly<Record<string, string>> = {
  'resources-list: resources-list': NO_RESOURCES,
  'resources-read-binary: resources-read-binary': NO_RESOURCES,
  'resources-read-text: resources-read-text': NO_RESOURCES,
  'resources-templates-read: resources-templates-read': NO_RESOURCES,
};

const PROMPTS: Readonly<Record<string, string>> = {
  'prompts-get-embedded-resource: prompts-get-embedded-resource': NO_PROMPTS,
  'prompts-get-simple: prompts-get-simple': NO_PROMPTS,
  'prompts-get-with-args: prompts-get-with-args': NO_PROMPTS,
  'prompts-get-with-image: prompts-get-with-image': NO_PROMPTS,
  'prompts-list: prompts-list': NO_PROMPTS,
};

const FIXTURE_TOOLS: Readonly<Record<string, string>> = {
  'tools-call-audio: tools-call-audio': OWN_TOOL,
  'tools-call-embedded-resource: tools-call-embedded-resource': OWN_TOOL,
  'tools-call-error: tools-call-error': OWN_TOOL,
  'tools-call-image: tools-call-image': OWN_TOOL,
  'tools-call-mixed-content: tools-call-mixed-content': OWN_TOOL,
  'tools-call-simple-text: tools-call-simple-text': OWN_TOOL,
  'tools-call-with-progress: tools-call-with-progress': OWN_TOOL,
};

const OF_EVERY_REVISION = {
  ...RESOURCES,
  ...PROMPTS,
  ...FIXTURE_TOOLS,
  'completion-complete: completion-complete': NO_COMPLETION,
};

const OF_2025_06 = {
  ...OF_EVERY_REVISION,
  'logging-set-level: logging-set-level': NO_LOGGING,
  'resources-subscribe: resources-subscribe': NO_RESOURCES,
  'resources-unsubscribe: resources-unsubscribe': NO_RESOURCES,
  'tools-call-elicitation: tools-call-elicitation': NO_INPUT,
  'tools-call-sampling: tools-call-sampling': NO_INPUT,
  'tools-call-with-logging: tools-call-with-logging': NO_LOGGING,
};

const SCHEMA_TOOL = { 'json-schema-2020-12: json-schema-2020-12-tool-found': OWN_TOOL };

/** Revision → `scenario: check` → reason. */
export const NOT_OFFERED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '2025-06-18': OF_2025_06,
  '2025-11-25': {
    ...OF_2025_06,
    ...SCHEMA_TOOL,
    'elicitation-sep1034-defaults: elicitation-sep1034-general': NO_INPUT,
    'elicitation-sep1330-enums: elicitation-sep1330-general': NO_INPUT,
    'server-sse-multiple-streams: server-sse-multiple-streams-session': STATELESS,
    'server-sse-polling: server-sse-polling-session': STATELESS,
  },
  '2026-07-28': {
    ...OF_EVERY_REVISION,
    ...SCHEMA_TOOL,
    'caching: sep-2549-prompts-list-caching-hints': NO_PROMPTS,
    'caching: sep-2549-resources-list-caching-hints': NO_RESOURCES,
    'caching: sep-2549-resources-read-caching-hints': NO_RESOURCES,
    'caching: sep-2549-resources-templates-list-caching-hints': NO_RESOURCES,
    'http-custom-header-server-validation: sep-2243-server-decode-base64': NO_HEADERS,
    'http-custom-header-server-validation: sep-2243-server-no-xmcp-tool': NO_HEADERS,
    'http-custom-header-server-validation: sep-2243-server-reject-invalid-param-chars': NO_HEADERS,
    'http-custom-header-server-validation: sep-2243-server-reject-param-mismatch': NO_HEADERS,
    'http-custom-header-server-validation: sep-2243-server-validate-param-match': NO_HEADERS,
    'input-required-result-basic-elicitation: sep-2322-elicitation-incomplete': NO_INPUT,
    'input-required-result-basic-list-roots: sep-2322-list-roots-incomplete': NO_INPUT,
    'input-required-result-basic-sampling: sep-2322-sampling-incomplete': NO_INPUT,
    'input-required-result-capability-check: sep-2322-respect-client-capabilities': NO_INPUT,
    'input-required-result-ignore-extra-params: sep-2322-ignore-unexpected-params': NO_INPUT,
    'input-required-result-missing-input-response: sep-2322-missing-response-rerequests': NO_INPUT,
    'input-required-result-multi-round: sep-2322-multi-round-r1': NO_INPUT,
    'input-required-result-multiple-input-requests: sep-2322-multiple-inputs-incomplete': NO_INPUT,
    'input-required-result-non-tool-request: sep-2322-non-tool-incomplete': NO_PROMPTS,
    'input-required-result-request-state: sep-2322-request-state-incomplete': NO_INPUT,
    'input-required-result-result-type: sep-2322-result-type-included': NO_INPUT,
    'input-required-result-tampered-state: sep-2322-reject-tampered-state': NO_INPUT,
    'sep-2164-resource-not-found: sep-2164-data-uri': NO_RESOURCES,
    'sep-2164-resource-not-found: sep-2164-error-code': NO_RESOURCES,
    'server-stateless: sep-2575-http-server-no-independent-requests-on-stream': OWN_TOOL,
    'server-stateless: sep-2575-missing-capability-http-400': OWN_TOOL,
    'server-stateless: sep-2575-server-no-log-without-loglevel': OWN_TOOL,
    'server-stateless: sep-2575-server-rejects-undeclared-capability': OWN_TOOL,
    'server-stateless: sep-2575-server-sends-prompts-list-changed-on-subscription': NO_CHANGES,
    'server-stateless: sep-2575-server-sends-tools-list-changed-on-subscription': NO_CHANGES,
  },
};

const BRIDGED = 'About HTTP itself, which on stdio is the bridge of the tests.';
const NO_STREAMS = 'The bridge of the tests answers each request once: it carries no subscription.';

/** Checks that fail over stdio only. */
export const NOT_OVER_STDIO: Readonly<Record<string, string>> = {
  'server-stateless: sep-2575-http-server-header-mismatch-400': BRIDGED,
  'server-stateless: sep-2575-http-server-meta-invalid-400': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404-initialize': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404-logging-setlevel': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404-ping': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404-resources-subscribe': BRIDGED,
  'server-stateless: sep-2575-http-server-method-not-found-404-resources-unsubscribe': BRIDGED,
  'server-stateless: sep-2575-http-server-unsupported-version-400': BRIDGED,
  'server-stateless: sep-2575-server-honors-notification-filter': NO_STREAMS,
  'server-stateless: sep-2575-server-sends-subscription-ack': NO_STREAMS,
  'server-stateless: sep-2575-server-tags-subscription-id': NO_STREAMS,
};
