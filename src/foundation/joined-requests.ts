/**
 * Joins equal requests: while one is under way, or no client has received its result, later ones get this result. So a
 * client that gave up can send its request again.
 */

interface UnderWay<R> {
  /** Clients that wait for the result, or may not have received it yet. */
  clients: number;
  readonly result: Promise<R>;
}

export interface Joined<R> {
  readonly result: R;
  /** Call it once, with whether the client received the result. */
  readonly settle: (heard: boolean) => void;
}

export class JoinedRequests<R> {
  readonly #underWay = new Map<string, UnderWay<R>>();

  /**
   * @param name equal for equal requests
   * @param onHeard called when the first client has received the result. From then on, an equal request is a new one
   * @throws the errors of `begin`, after which an equal request is a new one, too
   */
  async join(name: string, begin: () => Promise<R>, onHeard: () => void): Promise<Joined<R>> {
    const request = this.#underWay.get(name) ?? { clients: 0, result: begin() };
    request.clients++;
    this.#underWay.set(name, request);
    const isCurrent = (): boolean => this.#underWay.get(name) === request;
    try {
      const result = await request.result;
      const settle = (heard: boolean): void => {
        request.clients--;
        if (!isCurrent()) return;
        if (heard || request.clients === 0) this.#underWay.delete(name);
        if (heard) onHeard();
      };
      return { result, settle };
    } catch (error) {
      if (isCurrent()) this.#underWay.delete(name);
      throw error;
    }
  }
}
