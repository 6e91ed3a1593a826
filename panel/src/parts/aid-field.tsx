/**
 * A field for an AID. It suggests the agents of the node and of the address book, and accepts any text: a combobox with
 * a list (ARIA Authoring Practices).
 */
import { useContext, useEffect, useId, useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { shortAid } from '../lib/mark.ts';
import { aidOfLabel, suggested } from '../lib/suggest.ts';
import { Mark, Names } from './agent.tsx';
import { UntrustedText, useTrouble } from './basics.tsx';

interface Props {
  readonly label: string;
  /** An AID, or the typed text if it names no known agent. */
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly name?: string;
}

export function AidField({ label, value, onInput, name = 'aid' }: Props) {
  const names = useContext(Names);
  const id = useId();
  const [bad, trouble] = useTrouble(name);
  const [text, setText] = useState(names.get(value)?.text ?? value);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  useEffect(() => {
    // The form was cleared.
    if (value === '') setText('');
  }, [value]);
  const known = names.get(value);
  // A chosen agent does not restrict the list, so that another one can be chosen.
  const options = suggested(names, known?.text === text ? '' : text);
  const isShown = isOpen && options.length > 0;
  const choose = (aid: string): void => {
    setText(names.get(aid)?.text ?? aid);
    setOpen(false);
    onInput(aid);
  };
  const type = (typed: string): void => {
    setText(typed);
    setOpen(true);
    setAt(-1);
    onInput(aidOfLabel(names, typed) ?? typed.trim());
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const chosen = options[at];
    if (step !== 0) {
      setOpen(true);
      setAt(!isShown && step > 0 ? 0 : (Math.max(at, step < 0 ? 0 : -1) + step + options.length) % options.length);
    } else if (event.key === 'Enter' && isShown && chosen !== undefined) choose(chosen);
    else if (event.key === 'Escape' && isShown) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="picker">
        <input
          {...bad}
          id={id}
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={isShown}
          aria-controls={`${id}-list`}
          {...(isShown && at >= 0 ? { 'aria-activedescendant': `${id}-${at}` } : {})}
          autocomplete="off"
          spellcheck={false}
          placeholder={t('aid.pick')}
          value={text}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={press}
          onClick={() => setOpen(true)}
          onBlur={() => setOpen(false)}
        />
        <ul id={`${id}-list`} role="listbox" aria-label={label} hidden={!isShown}>
          {options.map((aid, i) => (
            // The input keeps the focus and handles the keys.
            <li
              key={aid}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              onMouseDown={(event) => {
                event.preventDefault();
                choose(aid);
              }}
            >
              <Mark aid={aid} size={16} />
              <UntrustedText text={names.get(aid)?.text ?? ''} />
              <code>{shortAid(aid)}</code>
            </li>
          ))}
        </ul>
      </div>
      {known !== undefined && value !== text && !isShown && (
        <small class="below">
          <Mark aid={value} size={16} /> <code title={value}>{shortAid(value)}</code>
        </small>
      )}
      {trouble}
    </div>
  );
}
