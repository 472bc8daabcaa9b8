/** A bucket on S3, or on a server with its API; signed by aws4fetch, which runs in pages and workers. */
import { AwsClient } from "aws4fetch";
import { sha256 } from "viem";
import { plainHex } from "../names.js";
import { type Store, objectName } from "./store.js";
import { ask, httpStore } from "./http.js";

/** A bucket and its key. */
export interface S3StoreOptions {
  bucket: string;
  /** The prefix of names, without a slash at its ends; none if left out. */
  prefix?: string | undefined;
  /** `us-east-1` if left out. */
  region?: string | undefined;
  /** The URL of a server that is not Amazon's: the bucket is then the first part of the path. */
  endpoint?: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
  /** For temporary credentials. */
  sessionToken?: string | undefined;
}

/** A bucket whose owner can sign URLs for others. */
export interface S3Store extends Store {
  /** A URL with which anyone can read or write one object without a key, for this many seconds, 3,600 if left out: for `httpStore` in a page. */
  sign(name: string, method: "GET" | "PUT", seconds?: number): Promise<string>;
}

/** Objects in a bucket. Keys belong on servers: a page has its objects' URLs signed by one. */
export function s3Store({ bucket, prefix, region = "us-east-1", endpoint, ...keys }: S3StoreOptions): S3Store {
  const aws = new AwsClient({ ...keys, region, service: "s3" });
  const base = endpoint ? `${endpoint.replace(/\/$/, "")}/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`;
  const at = (name: string) => [base, prefix, name].filter(Boolean).join("/");
  return {
    name: `s3://${bucket}${prefix ? `/${prefix}` : ""}`,
    get: async (object, { signal }) => {
      const { url, headers } = await aws.sign(at(objectName(object)));
      return (await ask(url, { headers, signal }))?.body ?? null;
    },
    put: async (object, bytes, { signal }) => {
      // Signed with the digest, which the server compares with the received bytes.
      const digest = "digest" in object ? object.digest : sha256(bytes);
      const signed = await aws.sign(at(objectName(object)), { method: "PUT", headers: { "x-amz-content-sha256": plainHex(digest) } });
      const answer = await ask(signed.url, { method: "PUT", headers: signed.headers, body: bytes as BodyInit, signal });
      if (!answer) throw new Error(`there is no bucket ${bucket}`);
      await answer.body?.cancel();
    },
    sign: async (name, method, seconds = 3_600) => {
      const url = new URL(at(name));
      url.searchParams.set("X-Amz-Expires", `${seconds}`);
      return (await aws.sign(url.href, { method, aws: { signQuery: true } })).url;
    },
  };
}

/** For a page without keys: objects by URLs that its server signs. */
export const signedStore = (name: string, sign: S3Store["sign"]): Store => ({ ...httpStore("https://signed.invalid", { sign }), name });
