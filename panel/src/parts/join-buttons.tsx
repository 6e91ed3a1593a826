/** Buttons that invite a machine and join a network. */
import { loadNetwork, loadTexts, t } from '../lib/i18n.ts';
import { Later } from './later.tsx';
import { openDialog } from './overlay.tsx';

const loadInvite = async () => {
  const [{ Invite }] = await Promise.all([import('../screens/network/invite.tsx'), loadTexts(loadNetwork)]);
  return Invite;
};
const loadJoin = async () => {
  const [{ Join }] = await Promise.all([import('../screens/network/join.tsx'), loadTexts(loadNetwork)]);
  return Join;
};

export function JoinButtons() {
  return (
    <div class="acts">
      <button type="button" onClick={() => openDialog((close) => <Later load={loadInvite} props={{ close }} />)}>
        {t('invite')}
      </button>
      <button type="button" onClick={() => openDialog((close) => <Later load={loadJoin} props={{ close }} />)}>
        {t('join')}
      </button>
    </div>
  );
}
