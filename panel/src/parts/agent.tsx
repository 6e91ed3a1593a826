/** How agents look everywhere: icon, name, start of the AID. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { barsOf, SHOWN_AID_CHARS, shortAid } from '../lib/mark.ts';
import { href } from '../lib/place.ts';
import { UntrustedText } from './basics.tsx';

export interface Naming {
  readonly text: string;
  /** True for a label of the user, false for the name in the agent's profile. */
  readonly isMine: boolean;
  /** It is an agent of the viewed node. */
  readonly isHere: boolean;
}

/** The names of agents by AID. */
export const Names = createContext<ReadonlyMap<string, Naming>>(new Map());

export function Mark({ aid, size = 22 }: { readonly aid: string; readonly size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      {barsOf(aid).map(({ reach, hue }, i) => (
        <rect key={i} class={`h${hue}`} x={1 + i * 4} y={12 - 2 * reach} width={2.6} height={4 * reach} rx={1} />
      ))}
    </svg>
  );
}

/** False for an agent of this node that has no name: its short AID takes the place of the name. */
function isNamed(aid: string, name: Naming | undefined): boolean {
  return name !== undefined && name.text !== shortAid(aid);
}

/** The name of an agent, in a sentence. */
export function Called({ aid }: { readonly aid: string }) {
  const name = useContext(Names).get(aid);
  if (name === undefined) return <code>{shortAid(aid)}</code>;
  return (
    <b title={aid}>
      {name.isMine ? (
        <UntrustedText text={name.text} />
      ) : (
        <>
          “<UntrustedText text={name.text} />”
        </>
      )}
    </b>
  );
}

/** An agent in a sentence, with the start of its AID. */
export function Inline({ aid }: { readonly aid: string }) {
  const name = useContext(Names).get(aid);
  return (
    <a class="inline" href={href([name?.isHere === true ? 'agents' : 'discover', aid])}>
      <Mark aid={aid} size={16} /> <Called aid={aid} /> {isNamed(aid, name) && <code>{shortAid(aid)}</code>}
    </a>
  );
}

interface WhoProps {
  readonly aid: string;
  /** Without the link. */
  readonly plain?: boolean;
  /** A description below the name. */
  readonly children?: ComponentChildren;
}

/** An agent with icon, name and the start of its AID, as a link to its page. */
export function Who({ aid, plain = false, children }: WhoProps) {
  const name = useContext(Names).get(aid);
  const content = (
    <>
      <Mark aid={aid} />
      <span>
        {isNamed(aid, name) && <Called aid={aid} />}
        <code title={aid}>{shortAid(aid)}</code>
        {children !== undefined && <small>{children}</small>}
      </span>
    </>
  );
  if (plain) return <span class="who">{content}</span>;
  return (
    <a class="who" href={href([name?.isHere === true ? 'agents' : 'discover', aid])}>
      {content}
    </a>
  );
}

/** A whole AID. A narrow page shows only its start. */
export function WholeAid({ aid }: { readonly aid: string }) {
  return (
    <code class="aid" title={aid}>
      <b>{aid.slice(0, SHOWN_AID_CHARS)}</b>
      <span>{aid.slice(SHOWN_AID_CHARS)}</span>
    </code>
  );
}
