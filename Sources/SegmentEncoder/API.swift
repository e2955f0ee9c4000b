// The types of the layers below that an embedder names. Nothing else of them is public.

import Encoding
import FileSystem
import Films
import FrameBatches
import Sessions
import Showing

// MARK: Batches

/// Why a batch cannot be encoded as it is.
public typealias BadBatch = FrameBatches.BadBatch
/// The name of a session: a directory of that name is in the output.
public typealias SessionID = FrameBatches.SessionID
/// The largest sizes and counts of a batch, its files and its pictures.
public typealias Limits = FrameBatches.Limits
/// A frame that is not shown, and why.
public typealias RefusedFrame = FrameBatches.RefusedFrame
/// A part of a picture that must not be seen.
public typealias Mask = FrameBatches.Mask
/// A colour of sRGB.
public typealias Colour = FrameBatches.Colour

// MARK: Encoding

/// Bytes against likeness.
public typealias Quality = Encoding.Quality
/// Processes that decode untrusted files.
public typealias DecoderForkServer = Encoding.DecoderForkServer

// MARK: Publishing

/// The result of publishing a batch.
public typealias Receipt = Sessions.Receipt
/// A session's segments are published, but its views are not up to date.
public typealias ViewUpdateFailure = Sessions.ViewUpdateFailure

// MARK: Showing

/// Lists the sessions of an output.
public typealias SessionCatalog = Showing.SessionCatalog
/// A session's entry in a list of sessions.
public typealias SessionSummary = Showing.SessionSummary
/// All that a player asks for.
public typealias SessionPlayback = Showing.SessionPlayback
/// Makes one film, or HLS, of a session, without encoding it again.
public typealias Stitching = Films.Stitching
/// The way a film treats time that was not recorded.
public typealias GapRule = Films.GapRule
/// A film that was made.
public typealias StitchedSession = Films.StitchedSession
/// Why a session cannot be used as it is.
public typealias BadSession = Encoding.BadSession

// MARK: Errors of any step

/// A system call that failed.
public typealias DiskError = FileSystem.DiskError
