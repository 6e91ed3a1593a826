/** A screen for one agent at a time: its heading and the selection of the agent. */
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { type Key, t } from '../lib/i18n.ts';
import { shortAid } from '../lib/mark.ts';
import { go, href } from '../lib/place.ts';
import { useQuery } from '../lib/query.ts';
import { Names } from './agent.tsx';
import { Answer, Empty } from './basics.tsx';

type Agents = Output<'agentsList'>;

/** The agent that a screen showed last. */
let last = '';

interface ChoiceProps {
  readonly agents: Agents['agents'];
  readonly value: string;
  readonly choose: (aid: string) => void;
}

function optionText(aid: string, name = shortAid(aid)): string {
  return name === shortAid(aid) ? name : `${name} (${shortAid(aid)})`;
}

function Choice({ agents, value, choose }: ChoiceProps) {
  const names = useContext(Names);
  const aids: readonly string[] = agents.map(({ aid }) => aid);
  return (
    <select aria-label={t('acting')} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {(aids.includes(value) ? aids : [value, ...aids]).map((aid) => (
        <option key={aid} value={aid}>
          {optionText(aid, names.get(aid)?.text)}
        </option>
      ))}
    </select>
  );
}

interface Props {
  readonly area: 'files' | 'messages';
  /** The agent in the address. */
  readonly aid: string | undefined;
  /** Buttons next to the selection. */
  readonly acts?: (aid: string) => ComponentChildren;
  readonly children: (aid: string, agents: Agents) => ComponentChildren;
}

/** Shows the agent in the address, or the last one, or the first one. Without agents it shows a message. */
export function AsAgent({ area, aid, acts, children }: Props) {
  const agents = useQuery('agentsList', {});
  const title = t(`area.${area}` satisfies Key);
  return (
    <Answer of={agents}>
      {(value) => {
        const known = value.agents.find((agent) => agent.aid === last) ?? value.agents[0];
        const acting = aid ?? known?.aid;
        if (acting === undefined)
          return (
            <>
              <h1>{title}</h1>
              <Empty text={t('agents.none')}>
                <a class="button" href={href(['new'])}>
                  {t('agent.new')}
                </a>
              </Empty>
            </>
          );
        last = acting;
        return (
          <>
            <div class="title">
              <h1>{title}</h1>
              <Choice agents={value.agents} value={acting} choose={(other) => go([area, other])} />
              {acts?.(acting)}
            </div>
            {children(acting, value)}
          </>
        );
      }}
    </Answer>
  );
}
