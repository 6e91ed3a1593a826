/** Selects the calling agent, if this node has several. */
import { useContext, useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { shortAid } from '../lib/mark.ts';
import { useQuery } from '../lib/query.ts';
import { Names } from './agent.tsx';

interface Caller {
  /** The caller for a request. Empty if there is no choice. */
  readonly local: { readonly local_aid?: string };
  readonly choice: preact.ComponentChildren;
}

/** The calling agent, and the field that selects it. */
export function useCaller(): Caller {
  const { value } = useQuery('agentsList', {});
  const names = useContext(Names);
  const [chosen, choose] = useState('');
  const aids: readonly string[] = (value?.agents ?? []).map(({ aid }) => aid);
  const [first = ''] = aids;
  if (aids.length < 2) return { local: {}, choice: null };
  const local_aid = aids.includes(chosen) ? chosen : first;
  return {
    local: { local_aid },
    choice: (
      <select aria-label={t('call.as')} value={local_aid} onChange={(event) => choose(event.currentTarget.value)}>
        {aids.map((aid) => (
          <option key={aid} value={aid}>
            {t('call.as')} {names.get(aid)?.text ?? shortAid(aid)}
          </option>
        ))}
      </select>
    ),
  };
}
