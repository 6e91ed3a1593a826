/** Turns single-letter shortcuts off (WCAG 2.1.4). */
import { t } from '../lib/i18n.ts';
import { lettersAct, saveLettersAct } from '../lib/prefs.ts';

export function ShortcutSwitch() {
  return (
    <label>
      <input
        type="checkbox"
        defaultChecked={lettersAct()}
        onChange={(event) => saveLettersAct(event.currentTarget.checked)}
      />
      {t('keys.letters')}
    </label>
  );
}
