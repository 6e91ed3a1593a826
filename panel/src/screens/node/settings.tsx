/** The settings, as a form made from the schema of the configuration. */
import { useState } from 'preact/hooks';
import { language, optionalText, t } from '../../lib/i18n.ts';
import { here, keep } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import {
  codeParts,
  fieldText,
  overriddenBy,
  restartKeys,
  type Setting,
  settingsOf,
  shownValue,
  tomlLine,
  valueOf,
} from '../../lib/settings.ts';
import { Answer, Copy, Empty, InputError, useTrouble } from '../../parts/basics.tsx';
import { Form } from '../../parts/form.tsx';
import { attempt, confirm } from '../../parts/overlay.tsx';
import { Restart } from './restart.tsx';

interface ControlProps {
  readonly setting: Setting;
  readonly text: string;
  readonly change: (text: string) => void;
}

function Control({ setting: { key, kind, choices }, text, change }: ControlProps) {
  const [bad, trouble] = useTrouble(key);
  const shared = { 'aria-describedby': `about-${key}`, ...bad, id: `set-${key}` };
  const input = {
    ...shared,
    value: text,
    autocomplete: 'off',
    spellcheck: false,
    onInput: (event: preact.TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      change(event.currentTarget.value),
  } as const;
  return (
    <>
      {kind === 'switch' && (
        <label>
          <input
            {...shared}
            type="checkbox"
            checked={text === 'true'}
            onChange={(event) => change(String(event.currentTarget.checked))}
          />
          {t(text === 'true' ? 'settings.on' : 'settings.off')}
        </label>
      )}
      {kind === 'choice' && (
        <select {...shared} value={text} onChange={(event) => change(event.currentTarget.value)}>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
      {(kind === 'list' || kind === 'json') && <textarea rows={kind === 'json' ? 4 : 2} {...input} />}
      {kind === 'number' && <input inputMode="decimal" {...input} />}
      {kind === 'text' && <input class={key === 'api_token' ? 'secret' : ''} {...input} />}
      {trouble}
    </>
  );
}

/** A value with its unit, in words. */
function inWords(setting: Setting, value: unknown): string {
  if (typeof value === 'boolean') return t(value ? 'settings.on' : 'settings.off');
  const text = shownValue(setting, value, language);
  return text === '' ? '–' : text;
}

function Description({ setting: { key, description } }: { readonly setting: Setting }) {
  const own = optionalText(`setting.${key}`);
  return (
    <p id={`about-${key}`} class="soft" {...(own === undefined ? { lang: 'en' } : {})}>
      {codeParts(own ?? description).map((part, i) => (i % 2 === 0 ? part : <code key={i}>{part}</code>))}
    </p>
  );
}

interface RowProps {
  readonly setting: Setting;
  readonly value: unknown;
  readonly overridden: string;
}

const LOOPBACK = /^(127\.|localhost|\[::1\])/;

/** Why a typed value cannot be saved. Empty if it can. */
function troubleOf({ kind, minimum, maximum }: Setting, meant: unknown): string {
  if (meant === undefined) return t(kind === 'json' ? 'settings.json' : 'settings.number');
  if (typeof meant !== 'number' || minimum === undefined || maximum === undefined) return '';
  return meant < minimum || meant > maximum ? t('settings.range', { minimum, maximum }) : '';
}

/** A separate operation changes the folder for objects. Only this machine may call it. */
function isEditable({ key, isReadOnly }: Setting): boolean {
  return !isReadOnly || (key === 'files_root' && here().node === null);
}

function saveValue(key: string, meant: unknown): Promise<unknown> {
  if (key === 'files_root') return perform('filesRootSet', { path: String(meant) });
  return perform('configPatch', { [key]: meant });
}

function Edit({ setting, value }: Pick<RowProps, 'setting' | 'value'>) {
  const { key } = setting;
  const known = fieldText(value);
  const [typed, setTyped] = useState(known);
  const meant = valueOf(setting, typed);
  const trouble = troubleOf(setting, meant);
  const save = (): Promise<unknown> => saveValue(key, meant);
  const ask = async (): Promise<void> => {
    if (key === 'api_addr' && !LOOPBACK.test(typed))
      confirm({ title: key, text: t('settings.open'), verb: t('save'), tail: 'open', run: save });
    else {
      const failure = await attempt(save, t('saved'));
      if (failure !== undefined) throw failure;
    }
  };
  return (
    <Form
      fields={[key, 'path']}
      verb={t('save')}
      isReady={trouble === ''}
      isIdle={typed === known}
      run={ask}
      more={
        <button type="button" onClick={() => setTyped(known)}>
          {t('undo')}
        </button>
      }
    >
      <Control setting={setting} text={typed} change={setTyped} />
      <InputError text={trouble} />
    </Form>
  );
}

function Fixed({ setting, value }: Pick<RowProps, 'setting' | 'value'>) {
  const line = tomlLine(setting.key, value ?? setting.standard);
  return (
    <>
      <b>{inWords(setting, value ?? setting.standard)}</b>
      <small class="below">
        {t('settings.file')} <code>{line}</code> <Copy text={line} />
      </small>
    </>
  );
}

function Row({ setting, value, overridden }: RowProps) {
  const { key, needsRestart, standard } = setting;
  return (
    <div class="setting">
      <div>
        {isEditable(setting) ? (
          <label for={`set-${key}`}>
            <code>{key}</code>
          </label>
        ) : (
          <code>{key}</code>
        )}
        <Description setting={setting} />
        <small>
          {t('settings.default', { value: inWords(setting, standard) })}
          {needsRestart && ` · ${t('settings.restart')}`}
          {overridden !== '' && ` · ${t('settings.overridden', { by: overridden })}`}
        </small>
      </div>
      <div>
        {isEditable(setting) ? <Edit setting={setting} value={value} /> : <Fixed setting={setting} value={value} />}
      </div>
    </div>
  );
}

export function Settings({ q = '' }: { readonly q?: string | undefined }) {
  const schema = useQuery('configSchema', {});
  const config = useQuery('configGet', {});
  const waiting = restartKeys(config.value);
  const wanted = q.trim().toLowerCase();
  const fits = ({ key, description }: Setting): boolean =>
    `${key} ${optionalText(`setting.${key}`) ?? description}`.toLowerCase().includes(wanted);
  return (
    <>
      {waiting.length > 0 && (
        <div class="bar" role="status">
          <span>{t('settings.waiting', { keys: waiting.join(', ') })}</span>
          <Restart />
        </div>
      )}
      <div class="acts">
        <input
          type="search"
          aria-label={t('filter')}
          placeholder={t('filter')}
          value={q}
          onInput={(event) => keep({ q: event.currentTarget.value })}
        />
      </div>
      <Answer of={schema}>
        {(form) => (
          <Answer of={config}>
            {(values) => {
              const settings = settingsOf(form).filter(fits);
              if (settings.length === 0) return <Empty text={t('settings.none')} />;
              return settings.map((setting) => (
                <Row
                  key={`${setting.key} ${fieldText(values[setting.key])}`}
                  setting={setting}
                  value={values[setting.key]}
                  overridden={overriddenBy(values, setting.key)}
                />
              ));
            }}
          </Answer>
        )}
      </Answer>
    </>
  );
}
