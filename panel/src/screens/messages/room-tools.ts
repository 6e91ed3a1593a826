/** What is written into rooms: those operations are tools. */
import { base64Of } from '../../lib/base64.ts';
import { perform } from '../../lib/query.ts';

type Args = Readonly<Record<string, string | number | readonly string[]>>;

/** Calls a tool of rooms; `name` is without its `group_`. */
export function roomTool(name: string, args: Args): Promise<Record<string, unknown>> {
  return perform('toolCall', { tool: `group_${name}`, args });
}

/** Adds an entry to a room. */
export function append(aid: string, group_id: string, kind: string, body: string, more: Args = {}): Promise<unknown> {
  return roomTool('append', { aid, group_id, kind, ...(body === '' ? {} : { body: base64Of(body) }), ...more });
}
