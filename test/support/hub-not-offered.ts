/** Conformance checks that the MCP hub does not pass, with the reason, besides those that svcd itself does not pass. */
import { NOT_OFFERED } from './mcp-not-offered.ts';

const NO_STATE = 'A session is only a name, so ending it changes nothing.';
const SESSIONS = {
  'server-session-lifecycle: server-session-delete-accepted': NO_STATE,
  'server-session-lifecycle: server-session-terminated-returns-404': NO_STATE,
};

/** Checks that svcd does not pass because it has no sessions. */
const NEEDS_SESSION = [
  'server-sse-multiple-streams: server-sse-multiple-streams-session',
  'server-sse-polling: server-sse-polling-session',
];

/** Revision → `scenario: check` → reason. */
export const NOT_OFFERED_BY_HUB: typeof NOT_OFFERED = Object.fromEntries(
  Object.entries(NOT_OFFERED).map(([revision, checks]) => {
    const left = Object.entries(checks).filter(([check]) => !NEEDS_SESSION.includes(check));
    return [revision, { ...Object.fromEntries(left), ...(revision < '2026' ? SESSIONS : {}) }];
  }),
);
