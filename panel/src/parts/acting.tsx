/** Which agent here acts. */

import { useContext } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { Names } from './agent.tsx';

interface Props {
  readonly agents: Output<'agentsList'>['agents'];
  readonly value: string;
  readonly choose: (aid: string) => void;
}

export function Acting({ agents, value, choose }: Props) {
  const names = useContext(Names);
  return (
    <select aria-label={t('acting')} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {agents.map(({ aid }) => (
        <option key={aid} value={aid}>
          {names.get(aid)?.text ?? aid} ({aid.slice(-5)})
        </option>
      ))}
    </select>
  );
}
