/**
 * Server-sent events: the indexer's newest block and the network's row, and changes in the answers to the listener's questions:
 * `ask=network&ask=list/tasks?state=running`, each a path under /api with its query.
 */
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { Question } from "./cache";
import { LONGEST, MOST, follow, hasRoomFor } from "./follow";
import { BadQuestion } from "./refusal";
import { stateNow } from "./state";

/** A sign of life for proxies, in milliseconds. */
const ALIVE = 15_000;

type QuestionOf = (path: string, query: URLSearchParams) => Question | undefined;

function questionsOf(c: Context, questionOf: QuestionOf): Map<string, Question> {
  const asked = c.req.queries("ask") ?? [];
  if (asked.length > MOST || asked.some(({ length }) => length > LONGEST)) throw new BadQuestion(`at most ${MOST} questions can be followed, of ${LONGEST} characters each`);
  return new Map(
    asked.map((one) => {
      const [path, query = ""] = one.split(/\?(.*)/s);
      const question = questionOf(path!, new URLSearchParams(query));
      if (!question) throw new BadQuestion(`${path} cannot be followed`);
      return [one, question];
    }),
  );
}

export const live =
  (questionOf: QuestionOf) =>
  (c: Context): Response => {
    let questions: Map<string, Question>;
    try {
      questions = questionsOf(c, questionOf);
    } catch (error) {
      if (error instanceof BadQuestion) return c.text(error.message, 400);
      throw error;
    }
    // A listener without room gets states alone, and asks.
    if (!hasRoomFor(questions.keys())) questions.clear();
    // Keeps proxies from buffering it.
    c.header("x-accel-buffering", "no");
    return streamSSE(c, async (stream) => {
      let wake = () => {};
      const now = await stateNow();
      let newest: string | undefined = JSON.stringify({ ...now, follows: [...questions.keys()] });
      let isOpen = true;
      const stop = follow(questions, now, (message) => {
        newest = message;
        wake();
      });
      stream.onAbort(() => {
        isOpen = false;
        wake();
      });
      // It may have left while the state was asked for, which Hono tells nobody who listens later.
      if (stream.aborted) isOpen = false;
      try {
        while (isOpen) {
          // Only the newest counts: a slow reader misses earlier ones, and sees by the ETag when a change does not follow its last answer.
          const data = newest;
          newest = undefined;
          await (data === undefined ? stream.write(": \n\n") : stream.writeSSE({ data }));
          if (newest !== undefined || !isOpen) continue;
          await new Promise<void>((resolve) => {
            const late = setTimeout(resolve, ALIVE);
            wake = () => {
              clearTimeout(late);
              resolve();
            };
          });
        }
      } finally {
        stop();
      }
    });
  };
