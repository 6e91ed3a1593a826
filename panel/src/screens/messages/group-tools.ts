/** Changes to groups. These operations are tools. */
import { base64Of } from '../../lib/base64.ts';
import { here } from '../../lib/place.ts';
import { perform } from '../../lib/query.ts';

type Args = Readonly<Record<string, string | number | readonly string[]>>;

/** Calls a group tool. `name` omits the prefix `group_`. */
export function groupTool(name: string, args: Args, base = here().base): Promise<Record<string, unknown>> {
  return perform('toolCall', { tool: `group_${name}`, args }, base);
}

/**
 * Adds an entry to a group.
 *
 * @param base see `perform`
 */
export function append(
  aid: string,
  group_id: string,
  kind: string,
  body: string,
  more: Args = {},
  base = here().base,
): Promise<unknown> {
  const args = { aid, group_id, kind, ...(body === '' ? {} : { body: base64Of(body) }), ...more };
  return groupTool('append', args, base);
}
