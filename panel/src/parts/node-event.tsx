/** Events of the node, in a sentence. */
import type { Output } from '../lib/api.ts';
import { type Key, t } from '../lib/i18n.ts';
import { Called, Inline } from './agent.tsx';

export type NodeEvent = Output<'nodeEventsRecent'>['events'][number];

/** The text of an event. Two types have a good and a bad variant. */
export function textKeyOf({ type, data }: NodeEvent): Key {
  if (type === 'agent.service' && data['ok'] === false) return 'happened.agent.service.down';
  if (type === 'network' && data['ready'] === false) return 'happened.network.lost';
  return `happened.${type}`;
}

/** The remote agent or node of an event. Null if there is none. */
export function remoteAidOf({ data }: NodeEvent): string | null {
  const [first]: readonly unknown[] = Array.isArray(data['agents']) ? data['agents'] : [];
  const other = [data['caller'], data['remote_aid'], first, data['node']].find((aid) => typeof aid === 'string');
  return typeof other === 'string' ? other : null;
}

/** Events of the node itself have no agent. */
const OF_NODE = /^(?:link\.|network|config|update)/;

export function NodeEventView({ event }: { readonly event: NodeEvent }) {
  const other = remoteAidOf(event);
  return (
    <>
      {!OF_NODE.test(event.type) && (
        <>
          <Called aid={event.aid} />{' '}
        </>
      )}
      {t(textKeyOf(event))}
      {other !== null && (
        <>
          {' '}
          <Inline aid={other} />
        </>
      )}
    </>
  );
}
