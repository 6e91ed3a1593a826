/** The progress of a file, and a button to cancel it. */
import { t } from '../lib/i18n.ts';

/** @param part 0 to 1 */
export function Uploading({ part, cancel }: { readonly part: number; readonly cancel: () => void }) {
  return (
    <span class="uploading">
      <progress aria-label={t('files.uploading')} value={part} max={1} />
      <button type="button" onClick={cancel}>
        {t('cancel')}
      </button>
    </span>
  );
}
