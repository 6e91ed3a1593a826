/** What goes on over another link when the one under it is lost, or a better one stands. */
import type { LinkPath, LinkStream } from '../../../network/links/types.ts';

/** How long a connection waits for another link, milliseconds. */
export const RESUME_MS = 60_000;
/** What the called side says where it knows the connection, before all else. */
export const KNOWN = 0;

export interface Resumable {
  /** True once it has ended. */
  readonly destroyed: boolean;
  /** True while a link is under it. */
  readonly isCarried: boolean;
  /** Whether a better link would be used. */
  readonly mayMove: boolean;
  /** The path of its link, or that of the last one. */
  path(): LinkPath;
  attach(link: LinkStream): void;
  destroy(): void;
}
