/** The settings, as a form made from the schema of the configuration. */
import { useState } from 'preact/hooks';
import { optionalText, t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import {
  fieldText,
  overriddenBy,
  restartKeys,
  type Setting,
  settingsOf,
  tomlLine,
  valueOf,
} from '../../lib/settings.ts';
import { Answer, Copy } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { Restart } from './restart.tsx';

interface ControlProps {
  readonly setting: Setting;
  readonly text: string;
  readonly isFixed: boolean;
  readonly change: (text: string) => void;
}

function Control({ setting: { key, kind, choices }, text, isFixed, change }: ControlProps) {
  const shared = { id: `set-${key}`, disabled: isFixed, 'aria-describedby': `about-${key}` };
  switch (kind) {
    case 'switch':
      return (
        <input
          {...shared}
          type="checkbox"
          checked={text === 'true'}
          onChange={(event) => change(String(event.currentTarget.checked))}
        />
      );
    case 'choice':
      return (
        <select {...shared} value={text} onChange={(event) => change(event.currentTarget.value)}>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      );
    case 'list':
      return <textarea {...shared} rows={2} value={text} onInput={(event) => change(event.currentTarget.value)} />;
    case 'number':
    case 'text':
      return (
        <input
          {...shared}
          inputMode={kind === 'number' ? 'decimal' : 'text'}
          autocomplete="off"
          value={text}
          onInput={(event) => change(event.currentTarget.value)}
        />
      );
  }
}

interface RowProps {
  readonly setting: Setting;
  readonly value: unknown;
  readonly overridden: string;
}

const LOOPBACK = /^(127\.|localhost|\[::1\])/;

function Row({ setting, value, overridden }: RowProps) {
  const { key, description, isReadOnly, needsRestart, standard } = setting;
  const known = fieldText(value);
  const own = optionalText(`setting.${key}`);
  const [typed, setTyped] = useState(known);
  const meant = valueOf(setting, typed);
  const save = async (): Promise<void> => {
    await perform('configPatch', { [key]: meant });
  };
  const ask = (): void => {
    if (key === 'api_addr' && !LOOPBACK.test(typed))
      confirm({ title: key, text: t('settings.open'), verb: t('save'), tail: 'open', run: save });
    else act(save, t('saved'));
  };
  return (
    <form
      class="setting"
      onSubmit={(event) => {
        event.preventDefault();
        if (meant !== undefined) ask();
      }}
    >
      <div>
        <label for={`set-${key}`}>
          <code>{key}</code>
        </label>
        <p id={`about-${key}`} class="soft" {...(own === undefined ? { lang: 'en' } : {})}>
          {own ?? description}
        </p>
        <small>
          {t('settings.default', { value: fieldText(standard) === '' ? '–' : fieldText(standard) })}
          {needsRestart && ` · ${t('settings.restart')}`}
          {overridden !== '' && ` · ${t('settings.overridden', { by: overridden })}`}
        </small>
      </div>
      <div>
        <Control setting={setting} text={typed} isFixed={isReadOnly} change={setTyped} />
        {isReadOnly && (
          <small>
            {t('settings.file')} <code>{tomlLine(key, value ?? standard)}</code>{' '}
            <Copy text={tomlLine(key, value ?? standard)} />
          </small>
        )}
        {!isReadOnly && typed !== known && (
          <div class="acts">
            <button type="submit" class="main" disabled={meant === undefined}>
              {t('save')}
            </button>
            <button type="button" onClick={() => setTyped(known)}>
              {t('undo')}
            </button>
          </div>
        )}
      </div>
    </form>
  );
}

export function Settings() {
  const schema = useQuery('configSchema', {});
  const config = useQuery('configGet', {});
  const waiting = restartKeys(config.value);
  return (
    <>
      {waiting.length > 0 && (
        <div class="bar" role="status">
          <span>{t('settings.waiting', { keys: waiting.join(', ') })}</span>
          <Restart />
        </div>
      )}
      <Answer of={schema}>
        {(form) => (
          <Answer of={config}>
            {(values) =>
              settingsOf(form).map((setting) => (
                <Row
                  key={`${setting.key} ${fieldText(values[setting.key])}`}
                  setting={setting}
                  value={values[setting.key]}
                  overridden={overriddenBy(values, setting.key)}
                />
              ))
            }
          </Answer>
        )}
      </Answer>
    </>
  );
}
